// The page's one state. Actions and events change it and say what changed (`emit`);
// views listen (`on`) and show it. Two fields belong to one view each, which changes them:
// `composing` to the composer, `pane` to the side pane.

export const state = {
  /** Whether the first /api/state has arrived. */
  ready: false,
  bot: { id: '0', username: 'the bot' },
  /** Users by id: the people and the bot. */
  users: new Map(),
  people: [],
  guilds: [],
  dms: [],
  /** Channels, threads and direct conversations by id. */
  channels: new Map(),
  settings: [],
  faults: {},
  model: '',
  /** Whether PROXY_APPS lists an app, through which people write. */
  proxies: false,
  /** The largest text file that can be attached. */
  maxFileBytes: 0,
  suggestion: null,
  /** Who the visitor is: a user's id. */
  you: null,
  /** The channel that is shown. */
  channel: null,
  /** By channel: { ids (oldest first), byId, complete (nothing is older) }. */
  messages: new Map(),
  /** Channels in which something new was said unseen. */
  unread: new Set(),
  /** By channel: who types until when (ms): Map user -> time. */
  typing: new Map(),
  /** Summaries by trigger, in their order. */
  turns: new Map(),
  /** Triggers by the answer's message id. */
  answerTo: new Map(),
  /** The turn that is explained: its trigger, and all that is known of it. */
  selected: null,
  explained: null,
  /** Settings that the visitor has changed: name -> value as text. */
  changed: new Map(),
  /** { trigger, status: 'busy' | 'ready' | 'failed', now, changed, env, error } */
  preview: null,
  /** The side pane's tab: 'why', 'tune' or 'faults'. */
  pane: 'why',
  /** What the composer does: { replyTo, editing, files }. */
  composing: { replyTo: null, editing: null, files: [] },
};

const listeners = new Map();

/** Calls `listener(detail)` whenever one of the topics, parted by spaces, is emitted. */
export function on(topics, listener) {
  for (const topic of topics.split(' ')) {
    if (!listeners.has(topic)) listeners.set(topic, []);
    listeners.get(topic).push(listener);
  }
}

/** Says that something changed. */
export function emit(topic, detail) {
  for (const listener of listeners.get(topic) ?? []) listener(detail);
}

/** The order of ids, which is that of time. */
export function compareIds(a, b) {
  return a.length - b.length || (a < b ? -1 : Number(a > b));
}

/** The messages of a channel, which may be none so far. */
export function messagesOf(channel) {
  if (!state.messages.has(channel)) state.messages.set(channel, { ids: [], byId: new Map(), complete: false });
  return state.messages.get(channel);
}

/** A message that has been loaded. */
export function messageOf(channel, id) {
  return state.messages.get(channel)?.byId.get(id);
}

/** Puts a message where its id belongs. What an event leaves out stays as it was. */
export function putMessage(message) {
  const held = messagesOf(message.channel_id);
  const known = held.byId.get(message.id);
  held.byId.set(message.id, known ? { ...known, ...message } : message);
  if (known) return 'changed';
  let at = held.ids.length;
  while (at > 0 && compareIds(held.ids[at - 1], message.id) > 0) at -= 1;
  held.ids.splice(at, 0, message.id);
  return 'added';
}

/** Takes a message out; whether it was there. */
export function dropMessage(channel, id) {
  const held = state.messages.get(channel);
  if (!held?.byId.delete(id)) return false;
  held.ids.splice(held.ids.indexOf(id), 1);
  return true;
}

/** Remembers a turn's summary. */
export function putTurn(summary) {
  state.turns.set(summary.trigger, { ...state.turns.get(summary.trigger), ...summary });
  for (const answer of summary.answers ?? []) state.answerTo.set(answer, summary.trigger);
}

/** The newest turn of a channel. */
export function lastTurn(channel) {
  let found = null;
  for (const turn of state.turns.values()) {
    if (turn.channel === channel && (!found || compareIds(found.trigger, turn.trigger) < 0)) found = turn;
  }
  return found;
}
