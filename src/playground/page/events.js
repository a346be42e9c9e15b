// What the server's stream of events changes in the state.

import { listen } from './api.js';
import { addChannel, attempt, emojiKey, explain, isHidden, loadState, reacted, reload, removed, select } from './actions.js';
import { announce } from './dom.js';
import { nameOf, sceneName } from './names.js';
import { emit, putMessage, putTurn, state } from './store.js';

/** How long somebody counts as typing after the last sign of it, in ms. */
const TYPING = 10_000;

/** Listens for as long as the page lives. */
export function startEvents() {
  let seen = false;
  listen(hear, (connected) => {
    emit('connection', connected);
    if (connected && seen) attempt(reload);
    seen = true;
  });
}

function hear(event, data) {
  if (event === 'dispatch') DISPATCH[data.t]?.(data.d);
  else if (event === 'turn') turnChanged(data);
  else if (event === 'state') attempt(loadState);
  else if (event === 'missed') attempt(reload);
}

const DISPATCH = {
  MESSAGE_CREATE: (message) => {
    if (isHidden(message)) return;
    stopTyping(message.channel_id, message.author?.id);
    show(message);
    if (message.channel_id !== state.channel && !state.unread.has(message.channel_id)) {
      state.unread.add(message.channel_id);
      emit('unread', message.channel_id);
    }
  },
  MESSAGE_UPDATE: show,
  MESSAGE_DELETE: ({ channel_id, id }) => removed(channel_id, id),
  MESSAGE_DELETE_BULK: ({ channel_id, ids }) => ids.forEach((id) => removed(channel_id, id)),
  THREAD_CREATE: addChannel,
  THREAD_UPDATE: addChannel,
  CHANNEL_CREATE: addChannel,
  CHANNEL_UPDATE: addChannel,
  MESSAGE_REACTION_ADD: (d) => reacted(d.channel_id, d.message_id, d.user_id, emojiKey(d.emoji), true),
  MESSAGE_REACTION_REMOVE: (d) => reacted(d.channel_id, d.message_id, d.user_id, emojiKey(d.emoji), false),
  TYPING_START: ({ channel_id, user_id }) => {
    if (!state.typing.has(channel_id)) state.typing.set(channel_id, new Map());
    state.typing.get(channel_id).set(user_id, Date.now() + TYPING);
    emit('typing', channel_id);
    setTimeout(() => emit('typing', channel_id), TYPING + 50);
  },
};

/** A message of a channel that is loaded; of others the newest page is loaded when they are opened. */
function show(message) {
  if (isHidden(message)) return;
  const held = state.messages.get(message.channel_id);
  if (!held || (held.ids.length === 0 && message.channel_id !== state.channel)) return;
  if (!held.byId.has(message.id) && !message.author) return;
  const kind = putMessage(message);
  emit('messages', { kind, channel: message.channel_id, id: message.id });
}

function stopTyping(channel, user) {
  if (state.typing.get(channel)?.delete(user)) emit('typing', channel);
}

function turnChanged(summary) {
  const isNew = !state.turns.has(summary.trigger);
  putTurn(summary);
  emit('turns', summary);
  if (summary.channel !== state.channel) return;
  const over = summary.outcome !== null;
  if (isNew) select(summary.trigger);
  else if (state.selected === summary.trigger) explain(summary.trigger);
  if (over) {
    stopTyping(summary.channel, state.bot.id);
    announce(`${nameOf(state.bot.id)} has answered ${nameOf(summary.asker)}. ${sceneName(summary.scene)}.`);
  }
}
