// What a visitor can do: each action asks the server, changes the state and says so.

import { api } from './api.js';
import { toast } from './dom.js';
import { dropMessage, emit, lastTurn, messageOf, messagesOf, on, putMessage, putTurn, state } from './store.js';

/** How many messages one request brings; the server gives no more than 100. */
const PAGE = 50;
const BIG_PAGE = 100;
/** How many requests a jump to a message may take: a channel of 10,000. */
const JUMP_PAGES = 100;
/** What stays loaded of a channel that is left. */
const KEPT = 200;
/** The pause before changed settings are tried, in ms: a slider moves many times a second. */
const PREVIEW_PAUSE = 120;

/** Does something that may be refused; says why and gives undefined if it was. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== 'AbortError') toast(error.message);
    return undefined;
  }
}

/** Takes over what the server says of everything; again, whenever it says that it has changed. */
export async function loadState() {
  const loaded = await api.state();
  state.bot = loaded.bot;
  state.people = loaded.people;
  state.users = new Map([...loaded.people, loaded.bot].map((user) => [user.id, user]));
  state.guilds = loaded.guilds;
  state.dms = loaded.dms;
  state.channels = new Map();
  for (const guild of loaded.guilds) {
    for (const channel of guild.channels) state.channels.set(channel.id, { guild_id: guild.id, ...channel });
  }
  for (const channel of loaded.dms) state.channels.set(channel.id, channel);
  state.settings = loaded.settings;
  state.faults = loaded.faults ?? {};
  state.model = loaded.model;
  state.proxies = loaded.proxies ?? false;
  state.maxFileBytes = loaded.max_file_bytes;
  state.suggestion = loaded.suggestion ?? null;
  for (const turn of loaded.turns) putTurn(turn);
  if (!state.users.has(state.you) || state.you === state.bot.id) state.you = loaded.people[0]?.id ?? null;
  state.ready = true;
  for (const topic of ['places', 'you', 'settings', 'faults', 'turns']) emit(topic);
}

/** Speaks as somebody else from now on, who does not see what was for another alone. */
export function become(user) {
  state.you = user;
  emit('you');
  for (const [channel, { byId }] of state.messages) {
    for (const message of [...byId.values()].filter(isHidden)) removed(channel, message.id);
  }
}

/** Whether a message is for one person alone: Discord's flag 64. */
export const isForOne = (message) => Boolean(message.flags & 64);

/** Whether a message is for somebody else alone. */
export const isHidden = (message) => isForOne(message) && message.interaction_metadata?.user.id !== state.you;

/** Shows a channel, with its newest messages. */
export async function openChannel(id) {
  const before = state.channel;
  if (before && before !== id) forget(before);
  state.channel = id;
  state.unread.delete(id);
  emit('channel');
  if (!state.channels.get(id)?.available_tags && messagesOf(id).ids.length === 0) await loadOlder();
  if (state.channel !== id) return;
  emit('messages', { kind: 'reset' });
  select(lastTurn(id)?.trigger ?? null);
}

/** Keeps the newest messages only of a channel that nobody looks at. */
function forget(channel) {
  const held = state.messages.get(channel);
  if (!held || held.ids.length <= KEPT) return;
  for (const id of held.ids.splice(0, held.ids.length - KEPT)) held.byId.delete(id);
  held.complete = false;
}

const loading = new Map();

/** Loads what is older than what is loaded; whether there was any. One request at a time for each channel. */
export function loadOlder(limit = PAGE) {
  const channel = state.channel;
  if (!loading.has(channel)) {
    loading.set(channel, loadPage(channel, limit).finally(() => loading.delete(channel)));
  }
  return loading.get(channel);
}

async function loadPage(channel, limit) {
  const held = messagesOf(channel);
  if (held.complete) return false;
  const page = await attempt(() => api.messages(channel, limit, held.ids[0]));
  if (!page) return false;
  held.complete = page.length < limit;
  for (const message of page) putMessage(message);
  emit('messages', { kind: 'older', channel });
  return page.length > 0;
}

/** Loads pages until a message of the shown channel is there; whether it is. */
export async function loadUntil(id) {
  const channel = state.channel;
  for (let page = 0; page < JUMP_PAGES && !messageOf(channel, id); page += 1) {
    if (!(await loadOlder(BIG_PAGE)) || state.channel !== channel) break;
  }
  return Boolean(messageOf(channel, id));
}

/** After a break of the connection: what was missed is loaded with everything else. */
export async function reload() {
  state.messages.clear();
  await loadState();
  // The channel of now: it may have been changed while everything was loaded.
  if (state.channel && state.channels.has(state.channel)) await openChannel(state.channel);
}

function took(message) {
  const kind = putMessage(message);
  emit('messages', { kind, channel: message.channel_id, id: message.id });
}

/** Posts as the person that the visitor is; whether it was taken. */
export async function post(channel, content, { replyTo, files }) {
  const draft = { author: state.you, content };
  if (replyTo) draft.reply_to = replyTo;
  if (files.length > 0) draft.attachments = files;
  const message = await attempt(() => api.post(channel, draft));
  if (!message) return false;
  took(message);
  return true;
}

/** Calls a command; whether the bot responded. */
export function call(channel, called) {
  return attempt(async () => (await api.call(channel, { author: state.you, ...called }), true));
}

/** Presses a button under a message. */
export function press(message, button) {
  attempt(() => api.press(message.channel_id, message.id, state.you, button));
}

/** Gives a message other words; whether that was taken. */
export async function edit(channel, id, content) {
  const done = await attempt(async () => (await api.edit(channel, id, content)) ?? {});
  if (!done) return false;
  if (done.id) took(done);
  return true;
}

/** Deletes a message. */
export async function remove(channel, id) {
  const done = await attempt(async () => (await api.remove(channel, id), true));
  if (done) removed(channel, id);
}

/** Takes a message that is gone out of everything that shows it. */
export function removed(channel, id) {
  if (state.composing.replyTo === id || state.composing.editing === id) {
    state.composing = { replyTo: null, editing: null, files: [] };
    emit('composing');
  }
  if (dropMessage(channel, id)) emit('messages', { kind: 'removed', channel, id });
}

/** Adds the visitor's reaction, or takes it back. */
export async function toggleReaction(channel, id, emoji) {
  const user = state.you;
  const there = reactors(messageOf(channel, id), emoji).includes(user);
  const change = there ? api.unreact : api.react;
  const done = await attempt(async () => (await change(channel, id, user, emoji), true));
  if (done) reacted(channel, id, user, emoji, !there);
}

/** Who reacted to a message with an emoji. */
const reactors = (message, emoji) => message?.reactions?.find((each) => emojiKey(each.emoji) === emoji)?.users ?? [];

/** Counts a reaction once, whether the answer or the event tells of it first. */
export function reacted(channel, id, user, emoji, added) {
  const message = messageOf(channel, id);
  const before = reactors(message, emoji);
  if (!message || before.includes(user) === added) return;
  const users = added ? [...before, user] : before.filter((each) => each !== user);
  const reactions = [...(message.reactions ?? [])];
  const at = reactions.findIndex((each) => emojiKey(each.emoji) === emoji);
  const reaction = { ...(reactions[at] ?? { emoji: { id: null, name: emoji } }), count: users.length, users };
  reactions.splice(at < 0 ? reactions.length : at, 1, reaction);
  took({ ...message, reactions: reactions.filter((each) => each.count > 0) });
}

/** An emoji as it stands in a reaction's path. */
export const emojiKey = (emoji) => (emoji.id ? `${emoji.name}:${emoji.id}` : emoji.name);

/** Opens a thread (from a message, or as a forum's post) and goes there; throws what is said against it. */
export async function openThread(parent, thread) {
  await arrive(await api.thread(parent, { author: state.you, ...thread }));
}

/** Opens the visitor's direct conversation with the bot. */
export async function openDirect() {
  const channel = await attempt(() => api.direct(state.you));
  if (channel) await arrive(channel);
}

/** Opens an exported channel; throws what is said against it. */
export async function openExport(path) {
  const { channel, note } = await api.open(path);
  await loadState();
  await openChannel(channel);
  if (note) toast(note, 'info');
}

async function arrive(channel) {
  addChannel(channel);
  await openChannel(channel.id);
}

/** A channel or thread that is new or has changed. */
export function addChannel(channel) {
  state.channels.set(channel.id, { ...state.channels.get(channel.id), ...channel });
  if (channel.type === 1 && !state.dms.some((each) => each.id === channel.id)) state.dms.push(channel);
  emit('places');
}

/** Posts as a webhook; throws what is said against it. */
export async function postWebhook(channel, name, content, proxied) {
  took(await api.webhook(channel, name, content, proxied));
}

/** Explains a turn, or none. */
export async function select(trigger) {
  state.selected = trigger;
  state.explained = null;
  if (state.preview && state.preview.trigger !== trigger) state.preview = null;
  emit('explained');
  emit('preview');
  if (trigger) await explain(trigger);
  if (trigger && state.changed.size > 0) preview();
}

/** Whether anything is known yet of what a turn was made from. */
const isCollected = (turn) => Boolean(turn) && (turn.outcome !== null || Boolean(turn.scene));

/** Loads all that is known of the selected turn: its context, and more when it is over. */
export async function explain(trigger) {
  if (!isCollected(state.turns.get(trigger))) return;
  const turn = await attempt(() => api.turn(trigger));
  if (!turn || state.selected !== trigger) return;
  state.explained = turn;
  emit('explained');
}

let timer = 0;
let running = null;

/** Changes a setting, or sets it back, and collects the selected turn again. */
export function change(name, value) {
  const setting = state.settings.find((each) => each.name === name);
  if (String(value) === String(setting.value)) state.changed.delete(name);
  else state.changed.set(name, String(value));
  emit('changed', name);
  preview();
}

/** Sets all settings back. */
export function resetSettings() {
  state.changed.clear();
  emit('changed');
  preview();
}

/** Collects the selected turn again with the changed settings; only the last result is shown. */
function preview() {
  clearTimeout(timer);
  running?.abort();
  running = null;
  const trigger = state.selected;
  if (!trigger || state.changed.size === 0) {
    state.preview = null;
    emit('preview');
    return;
  }
  state.preview = { ...state.preview, trigger, status: 'busy' };
  emit('preview');
  timer = setTimeout(() => collectAgain(trigger), PREVIEW_PAUSE);
}

async function collectAgain(trigger) {
  const abort = new AbortController();
  running = abort;
  const settings = Object.fromEntries(state.changed);
  let result;
  try {
    result = { status: 'ready', error: null, ...(await api.preview(trigger, settings, abort.signal)) };
  } catch (error) {
    if (error.name === 'AbortError') return;
    result = { status: 'failed', error: error.message };
  }
  if (running !== abort) return;
  state.preview = { ...state.preview, ...result };
  emit('preview');
}

/** Sets faults of the simulated Discord. */
export async function setFaults(faults) {
  const wanted = { ...state.faults, ...faults };
  const done = await attempt(async () => (await api.faults(wanted), true));
  if (done) state.faults = wanted;
  emit('faults');
}

/** Cuts the bot's connection to the simulated Discord. */
export async function disconnect() {
  const done = await attempt(async () => (await api.disconnect(), true));
  if (done) toast('The bot was disconnected. It connects again by itself and misses nothing.', 'info');
}

on('channel', () => {
  history.replaceState(null, '', `#${state.channel}`);
});
