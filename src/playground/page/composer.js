// The field in which messages are written: sending, replying, editing, text files, and the
// completion of mentions and slash commands.

import { attempt, call, edit, post } from './actions.js';
import { callOf, commandSuggestions, usage } from './commands.js';
import { announce, byId, el, icon, iconButton, toast } from './dom.js';
import { plain } from './message.js';
import { fromWire, queryAt, suggestions, toWire } from './mentions.js';
import { isThread, many, nameOf, userName } from './names.js';
import { emit, messageOf, messagesOf, on, state } from './store.js';

/** What was being written, by channel: { text, composing }. */
const drafts = new Map();
let typedIn = null;
let completing = null;

const field = () => byId('text');

export function startComposer() {
  byId('attach').append(icon('attach'));
  byId('attach').ariaLabel = 'Attach text files';
  byId('attach').title = 'Attach text files';
  byId('attach').addEventListener('click', () => byId('file').click());
  byId('file').addEventListener('change', attach);
  byId('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  field().addEventListener('keydown', keyed);
  field().addEventListener('input', complete);
  field().addEventListener('click', complete);
  field().addEventListener('blur', closeCompletions);
  on('channel', changeChannel);
  on('you places', showPlaceholder);
  on('composing', showComposing);
}

function changeChannel() {
  if (typedIn === state.channel) return;
  if (typedIn) drafts.set(typedIn, { text: field().value, composing: state.composing });
  typedIn = state.channel;
  const { text, composing } = drafts.get(typedIn) ?? { text: '', composing: nothing() };
  field().value = text;
  compose(composing);
  closeCompletions();
  showPlaceholder();
}

function showPlaceholder() {
  const channel = state.channels.get(state.channel);
  if (channel) field().placeholder = `Write as ${nameOf(state.you)}`;
}

/** Fills the field with a suggestion, if it is empty. */
export function suggest(content) {
  if (field().value === '') field().value = fromWire(content);
}

/** Sends what is written; it leaves the field at once, and comes back if it was not taken. */
async function send() {
  const text = field().value.trim();
  const written = state.composing;
  if (text === '' && written.files.length === 0) return;
  const channel = state.channel;
  const called = written.editing ? null : await attempt(() => callOf(text, written.files));
  // What cannot be meant stays in the field, like what was changed meanwhile.
  if (called === undefined || field().value.trim() !== text) return;
  const content = toWire(text);
  field().value = '';
  compose(nothing());
  let done;
  if (called) done = await call(channel, called);
  else if (written.editing) done = await edit(channel, written.editing, content);
  else done = await post(channel, content, written);
  if (!done) {
    giveBack(channel, text, written);
    return;
  }
  byId('hint').hidden = true;
  if (!written.editing) emit('sent');
}

/** Puts what was not taken back, unless something else is being written by now. */
function giveBack(channel, text, written) {
  if (state.channel !== channel) {
    drafts.set(channel, { text, composing: written });
  } else if (field().value === '') {
    field().value = text;
    compose(written);
  }
}

const nothing = () => ({ replyTo: null, editing: null, files: [] });

function compose(composing) {
  state.composing = composing;
  emit('composing');
  showUsage();
}

/** Replies to a message from now on. */
export function startReply(id) {
  compose({ ...state.composing, replyTo: id, editing: null });
  emit('view', 'chat');
  field().focus();
}

/** Changes a message from now on. */
export function startEdit(message) {
  compose({ ...nothing(), editing: message.id });
  emit('view', 'chat');
  field().value = fromWire(message.content);
  field().focus();
}

function stop() {
  if (state.composing.editing) field().value = '';
  compose(nothing());
}

function showComposing() {
  const { replyTo, editing, files } = state.composing;
  const banner = byId('composing');
  const about = messageOf(state.channel, editing ?? replyTo);
  banner.hidden = !about;
  if (about) {
    const what = editing ? `Editing as ${userName(about.author)}` : `Replying to ${userName(about.author)}`;
    const words = el('p', {}, el('b', { text: what }), ' ', el('span', { text: plain(about) }));
    banner.replaceChildren(words, iconButton('close', 'Cancel (Escape)', stop, { class: 'quiet icon-button' }));
  }
  byId('send').textContent = editing ? 'Save' : 'Send';
  byId('files').hidden = files.length === 0;
  byId('files').replaceChildren(...files.map((file) => el('span', { class: 'file' }, icon('attach'), file.filename,
    iconButton('close', `Remove ${file.filename}`, () => detach(file), { class: 'quiet icon-button' }))));
}

async function attach() {
  const chosen = [...byId('file').files];
  const { files } = state.composing;
  byId('file').value = '';
  for (const file of chosen) {
    if (file.size > state.maxFileBytes) {
      toast(`${file.name} is too large: text files up to ${state.maxFileBytes / 1000} KB can be attached.`);
    } else {
      const text = await file.text();
      files.push({ filename: file.name, text });
    }
  }
  emit('composing');
  field().focus();
}

function detach(file) {
  state.composing.files = state.composing.files.filter((each) => each !== file);
  emit('composing');
  field().focus();
}

function keyed(event) {
  if (event.isComposing) return;
  if (completing && completionKey(event)) {
    event.preventDefault();
    event.stopPropagation();
  } else if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    send();
  } else if (event.key === 'Escape' && (state.composing.replyTo || state.composing.editing)) {
    event.stopPropagation();
    stop();
  } else if (event.key === 'ArrowUp' && field().value === '') {
    editLast(event);
  }
}

/** Edits the visitor's last message, as chat programs do. */
function editLast(event) {
  const held = messagesOf(state.channel);
  const last = held.ids.findLast((id) => held.byId.get(id).author.id === state.you);
  if (!last) return;
  event.preventDefault();
  startEdit(held.byId.get(last));
}

/** Opens, moves or closes the suggestions, by what stands before the caret. */
async function complete() {
  const { value, selectionStart: caret, selectionEnd } = field();
  const open = caret === selectionEnd ? await suggested(value.slice(0, caret)) : null;
  if (field().value !== value || field().selectionStart !== caret) return;
  showUsage();
  if (!open || open.found.length === 0) {
    closeCompletions();
    return;
  }
  if (!completing) announce(`${many(open.found.length, 'suggestion')}. Up and down choose, Enter takes.`);
  completing = { ...open, at: 0 };
  showCompletions();
}

/** What could be meant by what was typed: `{ from, found }`, or null. */
async function suggested(text) {
  const query = queryAt(text, text.length);
  if (query) return { from: query.from, found: suggestions(query) };
  try {
    return await commandSuggestions(text);
  } catch {
    // Who may not call here is told when the call is sent.
    return null;
  }
}

/** Says what the command that is typed takes. */
async function showUsage() {
  const box = byId('usage');
  const text = field().value;
  const known = text.startsWith('/') ? await usage(text).catch(() => null) : null;
  box.hidden = !known;
  box.replaceChildren(...(known ? [el('code', { text: `/${known.name} ${known.options}` }), ` ${known.about}`] : []));
}

function showCompletions() {
  const list = byId('completions');
  const { found, at } = completing;
  list.hidden = false;
  list.replaceChildren(...found.map((each, nth) => el('li', {
    id: `completion-${nth}`,
    role: 'option',
    'aria-selected': String(nth === at),
    on: {
      // The field keeps the focus.
      mousedown: (event) => {
        event.preventDefault();
        take(each);
      },
    },
  }, el('b', { text: each.label }), each.about && el('span', { class: 'small', text: each.about }))));
  field().setAttribute('aria-activedescendant', `completion-${at}`);
  list.children[at].scrollIntoView({ block: 'nearest' });
}

function closeCompletions() {
  completing = null;
  byId('completions').hidden = true;
  byId('completions').replaceChildren();
  field().removeAttribute('aria-activedescendant');
}

/** Whether the key was for the suggestions. */
function completionKey(event) {
  const { found } = completing;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    completing.at = (completing.at + step + found.length) % found.length;
    showCompletions();
  } else if (event.key === 'Enter' || event.key === 'Tab') {
    take(found[completing.at]);
  } else if (event.key === 'Escape') {
    closeCompletions();
  } else {
    return false;
  }
  return true;
}

function take(chosen) {
  const end = field().selectionStart;
  field().setRangeText(chosen.insert.endsWith(':') ? chosen.insert : `${chosen.insert} `, completing.from, end, 'end');
  chosen.took?.();
  closeCompletions();
  field().focus();
  complete();
}

/** What a newcomer sees first: where to ask, what, and where to look. */
export function showHint() {
  const hint = byId('hint');
  const place = isThread(state.channels.get(state.channel)) ? 'this thread' : 'here';
  hint.hidden = false;
  hint.replaceChildren(
    el('p', {}, el('b', { text: 'Start here. ' }), `The bot is mentioned in ${place} already: press `, el('kbd', { text: 'Enter' }),
      ' to ask it. Then see why it answered so: what it read is marked in the chat, and the rest stands under “Why this answer”.'),
    iconButton('close', 'Close this hint', () => {
      hint.hidden = true;
      field().focus();
    }, { class: 'quiet icon-button' }));
}
