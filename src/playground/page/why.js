// "Why this answer": what the prompt of the selected turn was made from.

import { breakable, button, byId, el, table } from './dom.js';
import { goTo } from './list.js';
import { clockTime, count, many, nameOf, partAbout, partName, placeName, sceneName, timeOf } from './names.js';
import { plain } from './message.js';
import { emit, messageOf, on, state } from './store.js';

/** How many messages a list shows before "more". */
const LISTED = 12;

/** Which parts the visitor has opened or closed, by their title's first word. */
const opened = new Map();
const FOCUSABLE = 'button, summary, pre, .table';
let shown;

export function startWhy() {
  on('explained turns', render);
  on('channel', render);
}

function render() {
  const pane = byId('why');
  const turn = state.explained;
  const summary = state.turns.get(state.selected);
  const { scrollTop } = pane;
  const focused = [...pane.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  if (turn) pane.replaceChildren(...explanation(turn));
  else if (summary) pane.replaceChildren(waiting(summary));
  else pane.replaceChildren(...introduction());
  if (turn?.trigger !== shown) {
    shown = turn?.trigger;
    pane.scrollTop = 0;
    return;
  }
  // The same turn, of which more is known: what is read stays where it is.
  pane.scrollTop = scrollTop;
  if (focused >= 0) pane.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
}

function introduction() {
  return [
    el('h2', { text: 'See why the bot answers as it does' }),
    el('ol', { class: 'steps' },
      el('li', {}, 'Mention the bot: type ', el('kbd', { text: '@' }), ' in a thread and choose it, or reply to one of its messages.'),
      el('li', { text: 'Its answer appears in the chat while it is written.' }),
      el('li', { text: 'What it read is marked in the chat and explained here: which messages, which were left out and by which cap, facts, history, the prompt, calls and timings.' }),
      el('li', {}, 'Under ', el('b', { text: 'Tune' }), ' change the caps and see at once what would come in and go out.')),
  ];
}

function waiting(summary) {
  const running = `${nameOf(state.bot.id)} is answering ${nameOf(summary.asker)}…`;
  return el('p', { class: 'busy', text: summary.outcome === null ? running : 'Loading…' });
}

function explanation(turn) {
  return [
    heading(turn),
    figures(turn),
    fallbacks(turn),
    part('In the prompt', turn.included.length, () => messageList(turn.included, turn), true),
    part('Left out', turn.omitted.length, () => omitted(turn), true),
    part('Facts', facts(turn).length, () => factList(turn)),
    part('Recalled', turn.recalled.length, () => roles(turn.recalled, 'Nothing from earlier resembles the question.')),
    part('Stored history', turn.history.length, () => roles(turn.history, 'Nothing was stored of this conversation before.')),
    part('Prompt as sent', turn.prompt.length, () => roles(turn.prompt, 'No request was sent to a model.')),
    part('Context block', null, () => el('pre', { class: 'block', tabindex: '0', 'aria-label': 'Context block', text: turn.block || 'It is empty.' })),
    part('Calls to Discord', turn.fetches.length, () => fetches(turn)),
    part('Timings', null, () => timings(turn)),
    part('Telemetry', turn.telemetry.length, () => telemetry(turn)),
  ].filter(Boolean);
}

function heading(turn) {
  const question = messageOf(turn.channel, turn.trigger);
  const answer = turn.answers?.map((id) => messageOf(turn.channel, id)).find((each) => each?.command);
  const asker = question ? nameOf(question.author.id) : nameOf(turn.asker);
  const words = answer ? `/${answer.command}` : question ? plain(question) : '';
  const outcome = turn.outcome ?? 'being answered…';
  return el('header', { class: 'turn' },
    el('h2', { text: sceneName(turn.scene) }),
    turn.title && el('p', { class: 'small', text: turn.title }),
    el('p', {}, el('b', { text: `${asker}, ${clockTime(timeOf(turn.trigger))}: ` }), el('q', { text: words || '(only the mention)' })),
    el('p', { class: 'row' },
      el('span', { class: `chip${turn.outcome === 'answered' ? ' good' : ''}`, text: outcome }),
      button(answer ? 'Go to the answer' : 'Go to the question', () => goTo(answer?.id ?? turn.trigger, turn.channel), { class: 'link' }),
      turn.target && turn.target !== turn.trigger && button('Go to what is answered', () => goTo(turn.target, turn.channel), { class: 'link' })));
}

function figures(turn) {
  const total = turn.timings.find((each) => each.stage === 'turn')?.ms;
  const sent = turn.tokens?.in;
  const items = [
    [count(turn.included.length), 'messages'],
    [count(turn.omitted.length), 'left out'],
    [count(turn.chars), 'characters'],
    sent ? [count(sent), 'tokens sent'] : [`~${count(turn.tokens_estimate)}`, 'tokens'],
    [count(turn.fetches.length), turn.fetches.length === 1 ? 'call' : 'calls'],
    total !== undefined ? [`${count(Math.round(total))} ms`, 'in all'] : null,
  ].filter(Boolean);
  return el('dl', { class: 'figures' }, items.map(([value, name]) => el('div', {}, el('dt', { text: name }), el('dd', { text: value }))));
}

function fallbacks(turn) {
  if (!(turn.fallbacks?.length > 0)) return null;
  const each = ({ stage, reason }) => el('li', {}, el('code', { text: reason }), ` while ${partName(stage)} was collected; the answer was given without it.`);
  return el('div', { class: 'notice warn' }, el('h3', { text: 'Something could not be collected' }), el('ul', {}, turn.fallbacks.map(each)));
}

/** A part that can be folded; its content is made when it is first opened. */
function part(title, number, content, open = false) {
  const isOpen = opened.get(title) ?? (open && number !== 0);
  const box = el('div', { class: 'part-body' });
  const details = el('details', { class: 'part', open: isOpen },
    el('summary', {}, title, number !== null && el('span', { class: 'number', text: ` ${count(number)}` })), box);
  if (isOpen) box.append(content());
  details.addEventListener('toggle', () => {
    if (details.open !== isOpen || opened.has(title)) opened.set(title, details.open);
    if (details.open && !box.hasChildNodes()) box.append(content());
  });
  return details;
}

/** A list of messages, each a way to its place in the chat; long lists are opened by hand. */
export function messageList(items, turn) {
  const list = el('ul', { class: 'items' });
  const add = (some) => list.append(...some.map((each) => el('li', {}, contextItem(each, turn))));
  add(items.slice(0, LISTED));
  if (items.length > LISTED) {
    const more = el('li', {}, button(`${count(items.length - LISTED)} more`, () => {
      more.remove();
      add(items.slice(LISTED));
      list.children[LISTED].firstElementChild.focus();
    }, { class: 'link' }));
    list.append(more);
  }
  return items.length > 0 ? list : el('p', { class: 'small', text: 'None.' });
}

function contextItem(item, turn) {
  const message = messageOf(item.channel, item.id);
  const name = item.name ?? (message ? nameOf(message.author.id) : clockTime(timeOf(item.id)));
  const words = item.text ?? (message ? plain(message) : '');
  const elsewhere = item.channel !== turn.channel && placeName(state.channels.get(item.channel));
  return button([
    el('span', { class: 'item-head' },
      el('b', { text: name }), el('time', { text: clockTime(timeOf(item.id)) }),
      item.why && !item.cap && el('span', { class: 'tag', title: partAbout(item.why), text: partName(item.why) }),
      item.shortened && el('span', { class: 'tag warn', title: item.shortened, text: 'shortened' }),
      elsewhere && el('span', { class: 'small', text: elsewhere })),
    el('span', { class: 'item-text', text: words }),
  ], () => goTo(item.id, item.channel), { class: 'item' });
}

function omitted(turn) {
  const isSetting = (cap) => state.settings.some((each) => each.name === cap);
  const groups = [...Map.groupBy(turn.omitted, (each) => each.cap)];
  groups.sort(([a], [b]) => Number(isSetting(b)) - Number(isSetting(a)));
  const sections = groups.map(([cap, items]) => el('section', { class: 'cap' },
    el('h3', {}, `${many(items.length, 'message')} ${items[0].why}`),
    isSetting(cap) && button(`Change ${cap}`, () => emit('tune', cap), { class: 'link' }),
    messageList(items, turn)));
  return sections.length > 0 ? el('div', {}, sections) : el('p', { class: 'small', text: 'Nothing was left out.' });
}

const facts = (turn) => [...(turn.facts.user ?? []), ...(turn.facts.server ?? [])];

function factList(turn) {
  const some = (title, list) => list?.length > 0 && [el('h3', { text: title }), el('ul', {}, list.map((fact) => el('li', { text: typeof fact === 'string' ? fact : fact.text })))];
  const none = facts(turn).length === 0 && el('p', { class: 'small', text: 'Nothing is remembered about the asker or the server.' });
  return el('div', {}, some('About the asker', turn.facts.user), some('About the server', turn.facts.server), none);
}

/** Messages of a request: role and text. */
function roles(messages, none) {
  if (messages.length === 0) return el('p', { class: 'small', text: none });
  return el('div', {}, messages.map(({ role, content }, nth) => el('section', { class: 'role' },
    el('h3', { text: role }),
    el('pre', { tabindex: '0', 'aria-label': `${role}, message ${nth + 1}`, text: typeof content === 'string' ? content : JSON.stringify(content, null, 2) }))));
}

function fetches(turn) {
  if (turn.fetches.length === 0) return el('p', { class: 'small', text: 'None: all of it was known from the gateway.' });
  const row = ({ method, path, status, reason, ms }) => el('tr', {},
    el('td', {}, el('code', {}, breakable(`${method} ${path}`))),
    el('td', { class: status === 200 ? '' : 'bad', text: [status, partName(reason)].filter(Boolean).join(' ') || 'none' }),
    el('td', { class: 'amount', text: ms === null || ms === undefined ? '' : `${count(Math.round(ms))} ms` }));
  return table('Calls to Discord', {}, el('thead', {}, el('tr', {}, ['Call', 'Status', 'Time'].map((text) => el('th', { scope: 'col', text })))),
    el('tbody', {}, turn.fetches.map(row)));
}

function timings(turn) {
  const longest = Math.max(1, ...turn.timings.map((each) => each.ms));
  const row = ({ text, ms }) => {
    const bar = el('span', { class: 'bar' });
    bar.style.width = `${Math.max(1, (ms / longest) * 100)}%`;
    return el('tr', {}, el('th', { scope: 'row', text }), el('td', { class: 'bars', 'aria-hidden': 'true' }, bar),
      el('td', { class: 'amount', text: `${count(Math.round(ms * 10) / 10)} ms` }));
  };
  return table('Timings', { class: 'timings' }, el('tbody', {}, turn.timings.map(row)));
}

function telemetry(turn) {
  const lines = turn.telemetry.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  return el('pre', { class: 'block lines', tabindex: '0', 'aria-label': 'Telemetry lines', text: lines.join('\n') || 'No line was written.' });
}
