// One message as a row of the chat: who, when, the sanitised text, what is attached, its
// place in the explained context, and what can be done with it.

import { button, el, icon, iconButton, setServerHtml } from './dom.js';
import { emojiKey, isForOne } from './actions.js';
import { actsOf } from './message-acts.js';
import { clockTime, colourOf, count, dayName, fullTime, initial, many, nameOf, placeName, timeOf, userName } from './names.js';
import { messageOf, state } from './store.js';

/** Messages of one author this close together, in ms, share a head. */
const TOGETHER = 5 * 60_000;
/** Discord's message types. */
const KIND = { THREAD_CREATED: 18, REPLY: 19, THREAD_STARTER: 21, PLAIN: [0, 19, 20, 21, 23] };
/** Discord's flag of a message that the bot still thinks about. */
const LOADING = 128;
/** Discord's styles of buttons, as classes. */
const STYLES = { 1: 'primary', 4: 'danger' };
/** The most of a quoted message, in characters. */
const QUOTED = 120;

/** A row. `before` is the message above it. */
export function messageRow(message, before, mark) {
  const time = timeOf(message.id);
  const newDay = !before || dayName(timeOf(before.id)) !== dayName(time);
  const follows = !newDay && isFollowing(before, message, time);
  const bot = message.author.id === state.bot.id;
  const row = el('li', {
    class: ['message', follows && 'follows', newDay && 'new-day', bot && 'ours'].filter(Boolean).join(' '),
    id: `message-${message.id}`,
    tabindex: '-1',
    data: { id: message.id },
  });
  if (newDay) row.append(el('div', { class: 'day' }, el('span', { text: dayName(time) })));
  row.append(...body(message, follows, time));
  setMark(row, mark);
  return row;
}

function isFollowing(before, message, time) {
  const same = before.author.id === message.author.id && before.author.username === message.author.username;
  return same && !message.message_reference && !message.interaction_metadata && time - timeOf(before.id) < TOGETHER && KIND.PLAIN.includes(before.type);
}

function body(message, follows, time) {
  const name = userName(message.author);
  const when = el('time', { datetime: new Date(time).toISOString(), title: fullTime(time), text: clockTime(time) });
  const avatar = el('span', { class: `avatar ${colourOf(message.author.id)}`, 'aria-hidden': 'true', text: initial(name) });
  const app = message.webhook_id && !message.interaction_metadata ? 'webhook' : message.author.bot ? 'app' : null;
  const head = el('p', { class: 'who' },
    el('b', { text: name }), app && el('span', { class: 'app', text: app }), when);
  // Under the text: messages that follow one of the same person have no head.
  const edited = message.edited_timestamp && el('p', { class: 'small', text: 'edited' });
  const main = el('div', { class: 'main' }, quotation(message), called(message), head, text(message), edited, ...additions(message));
  return [follows ? el('span', { class: 'avatar-space' }) : avatar, main];
}

/** Who called which command. */
function called(message) {
  if (!message.command) return null;
  const who = userName(message.interaction_metadata.user);
  return el('p', { class: 'small' }, el('b', { text: who }), ' used ', el('code', { text: `/${message.command}` }));
}

function text(message) {
  const box = el('div', { class: 'content' });
  if (message.flags & LOADING) box.append(el('p', { class: 'small', text: `${userName(message.author)} is thinking…` }));
  else if (message.type === KIND.THREAD_CREATED) box.textContent = `started a thread: ${message.content}`;
  else if (message.type === KIND.THREAD_STARTER) setServerHtml(box, message.referenced_message?.html ?? '');
  else setServerHtml(box, message.html ?? '');
  if (message.type === KIND.THREAD_STARTER && !box.hasChildNodes()) {
    box.textContent = message.referenced_message?.content ?? 'What this thread began with is gone.';
  }
  return box;
}

/** What a reply points at; clicking goes there. */
function quotation(message) {
  const reference = message.message_reference;
  if (message.type !== KIND.REPLY || !reference?.message_id) return null;
  const other = message.referenced_message ?? messageOf(message.channel_id, reference.message_id);
  const words = other ? plain(other) || 'something attached' : 'a message that is gone';
  return button([icon('reply'), other && el('b', { text: userName(other.author) }), el('span', { text: words })], null, {
    class: 'quotation',
    tabindex: '-1',
    data: { act: 'goto', target: reference.message_id },
    'aria-label': `Go to what this replies to: ${other ? `${userName(other.author)}: ${words}` : words}`,
  });
}

/** A message's words on one line, mentions as names. */
export function plain(message) {
  const words = (message.content ?? '').replace(/<@!?(\d+)>/gu, (_, id) => `@${nameOf(id)}`);
  const line = words.replace(/\s+/gu, ' ').trim();
  return line.length > QUOTED ? `${line.slice(0, QUOTED)}…` : line;
}

function additions(message) {
  const thread = state.channels.get(message.thread?.id ?? message.id);
  return [
    ...(message.embeds ?? []).map(embed),
    ...(message.attachments ?? []).map(attachment),
    ...(message.sticker_items ?? []).map((each) => el('p', { class: 'extra', text: `Sticker: ${each.name}` })),
    message.poll && poll(message.poll),
    ...(message.message_snapshots ?? []).map(forward),
    thread && threadLink(thread),
    ...(message.components ?? []).map(buttons),
    (message.reactions ?? []).length > 0 && reactions(message),
    isForOne(message) && el('p', { class: 'small' }, `Only ${userName(message.interaction_metadata?.user)} can see this.`),
  ].filter(Boolean);
}

function embed(found) {
  const fields = (found.fields ?? []).map((field) => [el('p', {}, el('b', { text: field.name })), html(field)]);
  return el('div', { class: 'embed' },
    found.author?.name && el('p', { class: 'small', text: found.author.name }),
    found.title && el('p', {}, el('b', { text: found.title })),
    found.description && html(found),
    ...fields,
    found.footer?.text && el('p', { class: 'small', text: found.footer.text }));
}

/** The server's markup of a part of an embed. */
function html(part) {
  const box = el('div', { class: 'content' });
  setServerHtml(box, part.html ?? '');
  return box;
}

/** A row of buttons. */
function buttons(row) {
  const each = ({ label, style, custom_id, disabled }) => button(label, null, {
    class: STYLES[style], tabindex: '-1', disabled: Boolean(disabled), data: { act: 'press', target: custom_id },
  });
  return el('div', { class: 'row buttons' }, (row.components ?? []).filter((one) => one.type === 2).map(each));
}

function attachment(found) {
  const size = found.size < 1024 ? many(found.size, 'byte') : `${count(Math.round(found.size / 1024))} KB`;
  return el('p', { class: 'extra' }, icon('attach'), ' ', el('b', { text: found.filename }), ` · ${size}`);
}

function poll(found) {
  const answers = (found.answers ?? []).map((each) => el('li', { text: each.poll_media?.text ?? '' }));
  return el('div', { class: 'embed' }, el('p', {}, el('b', { text: found.question?.text ?? 'Poll' })), el('ul', {}, answers));
}

function forward(snapshot) {
  return el('div', { class: 'embed' },
    el('p', { class: 'small', text: 'Forwarded' }),
    el('p', { class: 'pre', text: snapshot.message?.content ?? '' }));
}

function threadLink(thread) {
  return button([icon('thread'), el('b', { text: thread.name }), ` · ${many(thread.message_count ?? 0, 'message')}`], null, {
    class: 'thread-link',
    tabindex: '-1',
    data: { act: 'open', target: thread.id },
    'aria-label': `Open the thread ${placeName(thread)}`,
  });
}

function reactions(message) {
  const each = ({ emoji, count: times, users }) => {
    const key = emojiKey(emoji);
    const own = users.includes(state.you);
    return button(`${emoji.name} ${times}`, null, {
      class: 'reaction',
      tabindex: '-1',
      data: { act: 'reaction', target: key },
      'aria-pressed': String(own),
      'aria-label': `${emoji.name}, ${many(times, 'reaction')}`,
    });
  };
  return el('div', { class: 'reactions' }, message.reactions.map(each));
}

/** The controls of the row that is pointed at or has the focus; the other rows have none. */
export function toolbar(message) {
  const items = actsOf(message).map(({ name, icon: shown, label, key }) =>
    iconButton(shown, label, null, { class: 'quiet icon-button', title: `${label} (${key.toUpperCase()})`, data: { act: name } }));
  return el('div', { class: 'toolbar', role: 'group', 'aria-label': `Actions for the message of ${userName(message.author)}` }, items);
}

/** Shows, or takes away, a row's place in the explained context. */
export function setMark(row, mark) {
  const chip = row.querySelector('.mark');
  if (mark) row.dataset.mark = mark.kind;
  else delete row.dataset.mark;
  if (!mark) {
    chip?.remove();
    return;
  }
  const shown = el('p', { class: 'mark', title: mark.about }, el('span', { text: mark.label }), el('span', { class: 'unseen', text: `, ${mark.about}` }));
  if (chip) chip.replaceWith(shown);
  else row.append(shown);
}
