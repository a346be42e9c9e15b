// What can be done with a message: which, by which key, and doing it.

import { isForOne, openChannel, press, remove, removed, select, toggleReaction } from './actions.js';
import { startEdit, startReply } from './composer.js';
import { commandsDialog, confirmDialog, reactDialog, threadDialog } from './dialogs.js';
import { goTo } from './list.js';
import { emit, state } from './store.js';

/** The acts that a message allows: `{ name, icon, label, key }`. */
export function actsOf(message) {
  const person = !message.author.bot && !message.webhook_id;
  const answered = state.answerTo.has(message.id);
  const explained = answered || state.turns.has(message.id);
  const why = answered ? 'Why this answer' : 'Why it was answered so';
  if (isForOne(message)) return [{ name: 'dismiss', icon: 'close', label: 'Dismiss', key: 'Delete' }];
  return [
    explained && { name: 'why', icon: 'why', label: why, key: 'w' },
    { name: 'reply', icon: 'reply', label: 'Reply', key: 'r' },
    { name: 'react', icon: 'react', label: 'React', key: '+' },
    canThread(message) && { name: 'thread', icon: 'thread', label: 'Start a thread', key: 't' },
    { name: 'commands', icon: 'more', label: 'Commands', key: 'a' },
    person && { name: 'edit', icon: 'edit', label: 'Edit', key: 'e' },
    { name: 'remove', icon: 'remove', label: 'Delete', key: 'Delete' },
  ].filter(Boolean);
}

function canThread(message) {
  const channel = state.channels.get(message.channel_id);
  return [0, 5].includes(channel?.type) && !state.channels.has(message.id);
}

/** The act that a key stands for. */
export function actOfKey(key, message) {
  return actsOf(message).find((each) => each.key === (key.length === 1 ? key.toLowerCase() : key))?.name;
}

const ACTS = {
  goto: (_, target) => goTo(target),
  open: (_, target) => openChannel(target),
  reaction: (message, target) => toggleReaction(message.channel_id, message.id, target),
  reply: (message) => startReply(message.id),
  edit: startEdit,
  react: reactDialog,
  commands: commandsDialog,
  thread: (message) => threadDialog(state.channels.get(message.channel_id), message),
  why: (message) => {
    emit('view', 'why');
    select(state.answerTo.get(message.id) ?? message.id);
  },
  press,
  dismiss: (message) => removed(message.channel_id, message.id),
  remove: (message) => confirmDialog('Delete this message?', 'Delete', () => remove(message.channel_id, message.id)),
};

/** Does it. */
export function act(name, message, target) {
  ACTS[name](message, target);
}
