// The list of messages. Of a long channel a stretch of rows is in the document, which moves
// with what is looked at; rows are replaced one by one.

import { loadOlder, loadUntil, openChannel, select } from './actions.js';
import { byId, moveFocus, toast } from './dom.js';
import { marks } from './marks.js';
import { act, actOfKey } from './message-acts.js';
import { messageRow, setMark, toolbar } from './message.js';
import { isForum } from './names.js';
import { emit, messageOf, messagesOf, on, state } from './store.js';

/** The most rows in the document: more make each frame slow. */
const MOST = 400;
/** How many rows are added at once. */
const STEP = 100;
/** This close to its end, in px, the list follows what is new. */
const AT_END = 80;
/** This close to either end of the rows, in px, more are added. */
const NEAR = 600;
/** A link to a message: its channel, and itself. */
const LINK = /^https:\/\/discord\.com\/channels\/(?:\d+|@me)\/(\d+)\/(\d+)$/u;

/** Rows by message id: a stretch without holes of what is loaded. */
const rows = new Map();
let shownMarks = new Map();
let active = null;
let atEnd = true;
let growing = false;
/** The heights of the scroller and of what is in it, when it was last scrolled. */
let heights = [0, 0];

const list = byId('messages');
const scroller = byId('scroller');

export function startList() {
  on('messages', changed);
  on('explained preview pane', showMarks);
  on('turns', (turn) => turn && refresh([turn.trigger, ...(turn.answers ?? [])]));
  on('you', () => refresh([...rows.keys()].filter((id) => messageOf(state.channel, id)?.reactions?.length > 0)));
  list.addEventListener('click', clicked);
  list.addEventListener('keydown', keyed);
  list.addEventListener('focusin', (event) => activate(event.target.closest('.message')));
  list.addEventListener('pointerover', (event) => event.pointerType === 'mouse' && showToolbar(event.target.closest('.message')));
  byId('newer').addEventListener('click', toEnd);
  scroller.addEventListener('scroll', scrolled);
  const sizes = new ResizeObserver(() => atEnd && !isForum(state.channels.get(state.channel)) && scrollToEnd());
  sizes.observe(scroller);
  sizes.observe(list);
}

/** The ids of the channel, and which of them have rows: from `first` up to before `end`. */
function stretch() {
  const { ids } = messagesOf(state.channel);
  const first = list.firstElementChild ? ids.indexOf(list.firstElementChild.dataset.id) : ids.length;
  return { ids, first, end: first + list.childElementCount };
}

function makeRow(ids, at) {
  const held = messagesOf(state.channel).byId;
  const row = messageRow(held.get(ids[at]), held.get(ids[at - 1]), shownMarks.get(ids[at]));
  rows.set(ids[at], row);
  return row;
}

const makeRows = (ids, from, to) => ids.slice(from, to).map((_, nth) => makeRow(ids, from + nth));

/** Shows other rows than before. */
function fill(from, to) {
  const { ids } = messagesOf(state.channel);
  rows.clear();
  list.replaceChildren(...makeRows(ids, Math.max(0, from), Math.min(ids.length, to)));
  setActive(list.lastElementChild?.dataset.id);
  showEnds();
}

/** Shows the newest messages. */
export function toEnd() {
  const { ids, end } = stretch();
  if (end < ids.length) fill(ids.length - STEP, ids.length);
  scrollToEnd();
}

function scrollToEnd() {
  atEnd = true;
  scroller.scrollTop = scroller.scrollHeight;
}

function changed({ kind, channel, id }) {
  if (kind === 'reset') {
    shownMarks = marks();
    const { ids } = messagesOf(state.channel);
    fill(ids.length - STEP, ids.length);
    if (isForum(state.channels.get(state.channel))) scroller.scrollTop = 0;
    else scrollToEnd();
  } else if (channel === state.channel) {
    if (kind === 'removed') remove(id);
    else if (kind === 'added') add(id);
    else if (kind === 'changed' && rows.has(id)) replace(id, true);
    showEnds();
  }
}

function add(id) {
  const { ids, first, end } = stretch();
  const at = ids.lastIndexOf(id);
  // It is already counted in `ids`; what is newer than rows that do not reach the end stays out.
  if (at > end || (at === end && end < ids.length - 1) || (at <= first && first > 0)) return;
  const row = makeRow(ids, at);
  const next = rows.get(ids[at + 1]);
  if (next) next.before(row);
  else list.append(row);
  if (!active || (atEnd && !rows.get(active).contains(document.activeElement))) setActive(id);
  if (next) replace(ids[at + 1], false);
  if (atEnd) trim(list.childElementCount - MOST, true);
}

/** Makes a row again, and the next one, whose head depends on it. The focus stays in it. */
function replace(id, withNext) {
  const { ids } = messagesOf(state.channel);
  const at = ids.lastIndexOf(id);
  const old = rows.get(id);
  const focused = old.contains(document.activeElement);
  const tools = old.querySelector('.toolbar') !== null;
  const row = makeRow(ids, at);
  old.replaceWith(row);
  if (active === id) setActive(id);
  if (tools) showToolbar(row);
  if (focused) row.focus({ preventScroll: true });
  if (withNext && rows.has(ids[at + 1])) replace(ids[at + 1], false);
}

function remove(id) {
  const row = rows.get(id);
  if (!row) return;
  const [next, neighbour] = [row.nextElementSibling, row.nextElementSibling ?? row.previousElementSibling];
  const focused = row.contains(document.activeElement);
  row.remove();
  rows.delete(id);
  if (next) replace(next.dataset.id, false);
  if (active === id) setActive(neighbour?.dataset.id);
  if (focused) (rows.get(active) ?? byId('text')).focus();
}

function refresh(ids) {
  for (const id of ids) if (rows.has(id)) replace(id, false);
}

function showEnds() {
  const held = messagesOf(state.channel);
  const { ids, first, end } = stretch();
  const none = ids.length === 0 ? 'Nobody has written here yet.' : 'This is the beginning.';
  byId('older').textContent = held.complete && first === 0 ? none : 'Older messages are being loaded…';
  if (ids.length === 0) byId('older').textContent = held.complete ? none : '';
  byId('newer').hidden = end >= ids.length;
}

function scrolled() {
  const seen = heights;
  heights = [scroller.clientHeight, scroller.scrollHeight];
  // What has grown or has less room is not scrolled away from the end by the visitor.
  if (atEnd && heights.some((height, nth) => height !== seen[nth])) {
    scrollToEnd();
    return;
  }
  const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  const { ids, end } = stretch();
  atEnd = below < AT_END && end >= ids.length;
  if (scroller.scrollTop < NEAR) growUp();
  else if (below < NEAR && end < ids.length) growDown();
}

/** Adds rows on top, loading them if need be. */
async function growUp() {
  const channel = state.channels.get(state.channel);
  if (growing || !state.ready || isForum(channel) || list.childElementCount === 0) return;
  growing = true;
  if (stretch().first === 0) await loadOlder(STEP);
  growing = false;
  if (state.channel !== channel.id) return;
  const { ids, first } = stretch();
  if (first > 0) {
    keepView(() => {
      list.prepend(...makeRows(ids, Math.max(0, first - STEP), first));
      replace(ids[first], false);
      trim(list.childElementCount - MOST, false);
    });
  }
  showEnds();
}

function growDown() {
  const { ids, end } = stretch();
  keepView(() => {
    list.append(...makeRows(ids, end, Math.min(ids.length, end + STEP)));
    trim(list.childElementCount - MOST, true);
  });
  showEnds();
}

/** Takes rows away at one end. */
function trim(number, onTop) {
  for (let nth = 0; nth < number; nth += 1) {
    const row = onTop ? list.firstElementChild : list.lastElementChild;
    rows.delete(row.dataset.id);
    row.remove();
  }
  if (active && !rows.has(active)) setActive((onTop ? list.firstElementChild : list.lastElementChild)?.dataset.id);
}

/** Changes rows while what is in view stays where it is. */
function keepView(change) {
  const top = scroller.getBoundingClientRect().top;
  const anchor = [...list.children].find((row) => row.getBoundingClientRect().bottom > top);
  const before = anchor?.getBoundingClientRect().top;
  const id = anchor?.dataset.id;
  change();
  const after = rows.get(id)?.getBoundingClientRect().top;
  if (after !== undefined) scroller.scrollTop += after - before;
}

/** Marks what is in the explained context; rows whose mark is the same are left alone. */
function showMarks() {
  const wanted = marks();
  for (const [id, row] of rows) {
    const [old, next] = [shownMarks.get(id), wanted.get(id)];
    if (old?.kind !== next?.kind || old?.label !== next?.label) setMark(row, next);
  }
  shownMarks = wanted;
}

/** Shows a message, wherever it is, and puts the focus on it. */
export async function goTo(id, channel = state.channel) {
  emit('view', 'chat');
  if (channel !== state.channel) {
    const trigger = state.selected;
    await openChannel(channel);
    if (trigger) await select(trigger);
  }
  if (!(await loadUntil(id))) {
    toast('This message is not there any more.', 'info');
    return;
  }
  if (!rows.has(id)) {
    const at = messagesOf(state.channel).ids.indexOf(id);
    fill(at - STEP / 2, at + STEP / 2);
  }
  atEnd = false;
  const row = rows.get(id);
  row.scrollIntoView({ block: 'center' });
  row.focus({ preventScroll: true });
  row.classList.add('flash');
  row.addEventListener('animationend', () => row.classList.remove('flash'));
}

/** The row that Tab reaches, and the only one whose controls it reaches. */
function setActive(id) {
  const tabbable = (row, index) => {
    row.tabIndex = index;
    for (const control of row.querySelectorAll('.main button, .content a')) control.tabIndex = index;
  };
  if (rows.has(active)) tabbable(rows.get(active), -1);
  active = id ?? null;
  if (rows.has(active)) tabbable(rows.get(active), 0);
}

function activate(row) {
  if (!row) return;
  if (row.dataset.id !== active) setActive(row.dataset.id);
  showToolbar(row);
}

/** Gives a row its controls, and takes them from rows that are neither pointed at nor focused. */
function showToolbar(row) {
  if (!row) return;
  for (const bar of [...list.getElementsByClassName('toolbar')]) {
    const other = bar.closest('.message');
    if (other !== row && !other.contains(document.activeElement)) bar.remove();
  }
  const message = messageOf(state.channel, row.dataset.id);
  if (message && !row.querySelector('.toolbar')) row.append(toolbar(message));
}

function clicked(event) {
  const row = event.target.closest('.message');
  const control = event.target.closest('[data-act]');
  const message = row && messageOf(state.channel, row.dataset.id);
  const link = LINK.exec(event.target.closest('a')?.href ?? '');
  if (link && state.channels.has(link[1])) {
    event.preventDefault();
    goTo(link[2], link[1]);
  } else if (message && control) act(control.dataset.act, message, control.dataset.target);
  else if (row && event.pointerType === 'touch') row.focus({ preventScroll: true });
}

function keyed(event) {
  const row = event.target.closest('.message');
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('.toolbar') && moveFocus(event, [...row.querySelectorAll('.toolbar button')], { ArrowRight: 1, ArrowLeft: -1 })) return;
  if (['ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key)) {
    event.preventDefault();
    step(event.key, row);
    return;
  }
  if (event.target !== row) {
    if (event.key === 'Escape') row.focus();
    return;
  }
  const message = messageOf(state.channel, row.dataset.id);
  if (event.key === 'Enter') row.querySelector('.toolbar button')?.focus();
  else if (!actOfKey(event.key, message)) return;
  else act(actOfKey(event.key, message), message);
  event.preventDefault();
}

/** To the row above or below, to the first, to the newest. */
async function step(key, row) {
  if (key === 'ArrowUp' && row === list.firstElementChild) await growUp();
  if (key === 'End') toEnd();
  const targets = {
    ArrowUp: row.previousElementSibling, ArrowDown: row.nextElementSibling, Home: list.firstElementChild, End: list.lastElementChild,
  };
  targets[key]?.focus();
}

/** Puts the focus on the list, on the row that had it last. */
export function focusMessages() {
  rows.get(active)?.focus();
}

/** The oldest row of the document that is marked so. */
export function goToFirst(kinds) {
  const own = messagesOf(state.channel).ids.find((id) => kinds.includes(shownMarks.get(id)?.kind));
  if (own) goTo(own);
}
