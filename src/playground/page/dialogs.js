// Dialogs: new threads and posts, webhook posts, reactions, going to a channel, opening an
// export, asking before something is deleted, a message's commands, the shortcuts.

import { attempt, call, openExport, openThread, postWebhook, toggleReaction } from './actions.js';
import { messageCommands } from './commands.js';
import { button, el, iconButton, moveFocus } from './dom.js';
import { toWire } from './mentions.js';
import { isForum, placeAbout, placeName, TYPE } from './names.js';
import { plain } from './message.js';
import { go } from './sidebar.js';
import { singleKeys, SHORTCUTS, useSingleKeys } from './keyboard.js';
import { state } from './store.js';

const EMOJI = ['👍', '❤️', '😂', '🎉', '🤔', '👀', '✅', '❌'];
/** How many places are listed at once. */
const LISTED = 12;

/** Opens a dialog; Escape closes it and the focus goes back to where it was. */
function dialog(title, ...content) {
  const before = document.activeElement;
  const heading = el('h2', { id: 'dialog-title', text: title });
  const box = el('dialog', { 'aria-labelledby': 'dialog-title' },
    el('header', {}, heading, iconButton('close', 'Close', () => box.close(), { class: 'quiet icon-button' })), ...content);
  box.addEventListener('close', () => {
    box.remove();
    if (![document.body, before].includes(document.activeElement)) return;
    // Chromium gives the focus back without the caret, and keys would write nothing.
    before?.blur();
    before?.focus();
  });
  box.addEventListener('click', (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  box.querySelector('[autofocus]')?.focus();
  return box;
}

/** A dialog with fields; it stays open and shows what `done(values)` throws. */
function form(title, submit, fields, done) {
  const problem = el('p', { class: 'notice warn', role: 'alert', hidden: true });
  const shape = el('form', {}, fields, problem, el('p', { class: 'row end' }, el('button', { type: 'submit', class: 'primary', text: submit })));
  const box = dialog(title, shape);
  shape.addEventListener('submit', async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      await done(new FormData(shape));
      box.close();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  });
}

function line(label, name, more = {}) {
  return el('label', { class: 'field' }, el('span', { text: label }), el('input', { type: 'text', name, required: true, maxlength: '100', ...more }));
}

function area(label, name, more = {}) {
  return el('label', { class: 'field' }, el('span', { text: label }), el('textarea', { name, rows: '4', ...more }));
}

/** A new thread of a channel, from one of its messages or by itself. */
export function threadDialog(channel, message = null) {
  const about = message && el('p', { class: 'small', text: `From: ${plain(message)}` });
  const words = message ? null : area('First message (optional)', 'content');
  form('New thread', 'Start the thread', [about, line('Title', 'name', { autofocus: true }), words], (values) => openThread(channel.id, {
    name: values.get('name'),
    ...(message ? { message: message.id } : {}),
    ...(values.get('content') ? { content: toWire(values.get('content')) } : {}),
  }));
}

/** A new post of a forum, with tags. */
export function postDialog(forum) {
  const tags = (forum.available_tags ?? []).map((tag) =>
    el('label', { class: 'choice' }, el('input', { type: 'checkbox', name: 'tags', value: tag.id }), tag.name));
  const choices = tags.length > 0 && el('fieldset', {}, el('legend', { text: 'Tags' }), tags);
  const fields = [line('Title', 'name', { autofocus: true }), area('Text', 'content', { required: true }), choices].filter(Boolean);
  form(`New post in ${placeName(forum)}`, 'Post', fields, (values) => openThread(forum.id, {
    name: values.get('name'),
    content: toWire(values.get('content')),
    tags: values.getAll('tags'),
  }));
}

/** A message by a webhook, as other programs post them. */
export function webhookDialog(channel) {
  const fields = [line('Name of the webhook', 'name', { autofocus: true, maxlength: '80', value: 'Build' }), area('Text', 'content', { required: true })];
  if (state.proxies) {
    fields.push(el('label', { class: 'row' }, el('input', { type: 'checkbox', name: 'proxied' }), el('span', { text: 'What a person writes through an app of PROXY_APPS' })));
  }
  form('Post as a webhook', 'Post', fields, (values) =>
    postWebhook(channel.id, values.get('name'), toWire(values.get('content')), values.get('proxied') === 'on'));
}

/** An export, by its path on the machine that runs the playground. */
export function openExportDialog() {
  const fields = [
    el('p', { class: 'small', text: 'The JSON file of a channel, as DiscordChatExporter writes it. It is read on this machine and sent nowhere.' }),
    line('Path', 'path', { autofocus: true, maxlength: '4096', placeholder: '/home/you/exports/channel.json', spellcheck: 'false' }),
  ];
  form('Open an exported channel', 'Open', fields, (values) => openExport(values.get('path')));
}

/** A reaction, from a few or any. */
export function reactDialog(message) {
  const react = (emoji) => {
    box.close();
    toggleReaction(message.channel_id, message.id, emoji);
  };
  const choices = el('div', { class: 'row emoji' }, EMOJI.map((emoji, nth) => button(emoji, () => react(emoji), { autofocus: nth === 0 })));
  const other = el('input', { type: 'text', name: 'emoji', maxlength: '20', required: true });
  const shape = el('form', {}, el('label', { class: 'field' }, el('span', { text: 'Another emoji' }), other));
  shape.addEventListener('submit', (event) => {
    event.preventDefault();
    react(other.value.trim());
  });
  choices.addEventListener('keydown', (event) => moveFocus(event, [...choices.children], { ArrowRight: 1, ArrowLeft: -1 }));
  const box = dialog('React', choices, shape);
}

/** The bot's commands in the menu of a message. */
export async function commandsDialog(message) {
  const names = (await attempt(messageCommands)) ?? [];
  const use = (command) => {
    box.close();
    call(message.channel_id, { command, message: message.id });
  };
  const none = names.length === 0 && el('p', { text: 'The bot has none here.' });
  const box = dialog('Commands for this message', none || el('div', { class: 'row' }, names.map((name, nth) => button(name, () => use(name), { autofocus: nth === 0 }))));
}

/** Asks before something is done that cannot be taken back. */
export function confirmDialog(question, label, act) {
  const yes = () => {
    box.close();
    act();
  };
  const box = dialog(question, el('p', { class: 'row end' }, button('Cancel', () => box.close(), { class: 'quiet' }), button(label, yes, { class: 'danger', autofocus: true })));
}

/** Goes to any channel, thread or direct conversation by a part of its name. */
export function jumpDialog() {
  const field = el('input', {
    type: 'text', autofocus: true, role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'jump-list', 'aria-autocomplete': 'list', 'aria-label': 'Part of a name',
    placeholder: 'Part of a name', spellcheck: 'false',
  });
  const list = el('ul', { id: 'jump-list', role: 'listbox', 'aria-label': 'Channels' });
  let found = [];
  let at = 0;
  const open = (channel) => {
    box.close();
    go(channel.id);
  };
  const show = () => {
    list.replaceChildren(...found.map((channel, nth) => el('li', {
      id: `jump-${nth}`, role: 'option', 'aria-selected': String(nth === at), on: { click: () => open(channel) },
    }, el('b', { text: placeName(channel) }), el('span', { class: 'small', text: isForum(channel) ? 'Forum' : placeAbout(channel) }))));
    if (found.length > 0) field.setAttribute('aria-activedescendant', `jump-${at}`);
    else field.removeAttribute('aria-activedescendant');
    list.children[at]?.scrollIntoView({ block: 'nearest' });
  };
  const search = () => {
    const query = field.value.trim().toLowerCase();
    const all = [...state.channels.values()].filter((channel) => channel.type !== TYPE.CATEGORY);
    found = all.filter((channel) => placeName(channel).toLowerCase().includes(query)).slice(0, LISTED);
    at = 0;
    show();
  };
  field.addEventListener('input', search);
  field.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length > 0) {
      at = (at + step + found.length) % found.length;
      show();
    } else if (event.key === 'Enter' && found[at]) {
      open(found[at]);
    } else return;
    event.preventDefault();
  });
  const box = dialog('Go to', field, list);
  search();
}

/** The shortcuts, and the switch for those of one key. */
export function helpDialog() {
  const rows = SHORTCUTS.map(([keys, what]) => el('tr', {},
    el('td', {}, keys.map((key) => el('kbd', { text: key }))), el('td', { text: what })));
  const toggle = el('input', { type: 'checkbox', checked: singleKeys(), on: { change: () => useSingleKeys(toggle.checked) } });
  dialog('Keyboard shortcuts',
    el('table', { class: 'shortcuts' }, el('tbody', {}, rows)),
    el('label', { class: 'choice' }, toggle, 'Shortcuts of a single key'),
    el('p', { class: 'small', text: `The bot’s model: ${state.model || 'unknown'}.` }));
}
