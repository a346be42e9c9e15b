// Names and words for what has an id: people, channels, times, parts of a context.

import { state } from './store.js';

/** Discord's channel types that the page tells apart. */
export const TYPE = { DM: 1, CATEGORY: 4, THREADS: [10, 11, 12], FORUMS: [15, 16] };

/** A user's name, as others see it. */
export function userName(user) {
  return user?.global_name || user?.username || 'somebody';
}

/** The name of the user with this id. */
export function nameOf(id) {
  const user = state.users.get(id);
  return user ? userName(user) : 'somebody';
}

export const isThread = (channel) => TYPE.THREADS.includes(channel?.type);
export const isForum = (channel) => TYPE.FORUMS.includes(channel?.type);

/** `#pumps`, the title of a thread, `Ines and Clew`. */
export function placeName(channel) {
  if (!channel) return 'an unknown channel';
  if (channel.type === TYPE.DM) return `${directPartner(channel)} and ${userName(state.bot)}`;
  return isThread(channel) || channel.type === TYPE.CATEGORY ? channel.name : `#${channel.name}`;
}

/** The person of a direct conversation. */
export function directPartner(channel) {
  const person = (channel.recipients ?? []).find((user) => user.id !== state.bot.id);
  return userName(person);
}

/** Where a thread or a channel is. */
export function placeAbout(channel) {
  if (!channel) return '';
  if (channel.type === TYPE.DM) return 'A direct conversation: nobody else can read it.';
  const guild = state.guilds.find((each) => each.id === channel.guild_id)?.name ?? '';
  if (!isThread(channel)) return [guild, channel.topic].filter(Boolean).join(' · ');
  const parent = state.channels.get(channel.parent_id);
  const kind = isForum(parent) ? 'Post' : channel.type === 12 ? 'Private thread' : 'Thread';
  const archived = channel.thread_metadata?.archived ? ' · archived' : '';
  return `${kind} in ${placeName(parent)} · ${guild}${archived}`;
}

/** The names of the tags of a forum post. */
export function tagNames(thread) {
  const tags = state.channels.get(thread.parent_id)?.available_tags ?? [];
  return (thread.applied_tags ?? []).map((id) => tags.find((tag) => tag.id === id)?.name).filter(Boolean);
}

/** The time of an id, in ms since 1970; 0 for one that is none. */
export function timeOf(id) {
  try {
    return Number((BigInt(id) >> 22n) + 1420070400000n);
  } catch {
    return 0;
  }
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const number = new Intl.NumberFormat('en-US');

export const clockTime = (time) => clock.format(time);
export const dayName = (time) => day.format(time);
export const fullTime = (time) => full.format(time);
export const count = (value) => number.format(value ?? 0);

/** `1 message`, `2 messages`. */
export function many(value, one, more = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : more}`;
}

/** Why a message is in the prompt: a word, and a sentence. */
const PARTS = {
  tail: 'one of the last messages before the question',
  history: 'from the thread’s history',
  chain: 'in the line of replies',
  starter: 'what the thread began with',
  pointed_at: 'what the asker replied to',
  target: 'the message that is answered',
  linked: 'what a link leads to',
  link_context: 'near what a link leads to',
  pinned: 'a pinned message',
  reply: 'in the asker’s conversation: a reply',
  named: 'in the asker’s conversation: one names the other’s author',
  answers: 'in the asker’s conversation: one answers the other',
  same_topic: 'in the asker’s conversation: the same rare words',
};

/** A sentence for why a message is there; the word itself, if it is new. */
export const partAbout = (why) => PARTS[why] ?? why;
export const partName = (why) => (why ?? '').replaceAll('_', ' ');

/** What a scene is, in words. */
const SCENES = {
  thread: 'A question in a thread',
  reply_chain: 'A reply in a channel',
  direct: 'A direct message',
  lone: 'A mention by itself in a channel',
};
export const sceneName = (scene) => SCENES[scene] ?? scene ?? 'A question';

/** One of eight colours for a user, always the same. */
export function colourOf(id) {
  const nth = state.people.findIndex((user) => user.id === id);
  const number = nth >= 0 ? nth : [...id].reduce((sum, digit) => (sum * 31 + digit.charCodeAt(0)) % 997, 0);
  return `c${number % 8}`;
}

/** A person's first letter, whole if it is made of several code points. */
export function initial(name) {
  const [first] = new Intl.Segmenter().segment(name.trim() || '?');
  return first.segment.toUpperCase();
}
