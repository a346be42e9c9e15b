// Mentions: `@Ada` as people type it, `<@123>` as Discord has it, and who could be meant.

import { nameOf, placeName, TYPE, userName } from './names.js';
import { state } from './store.js';

/** How many suggestions are shown at once. */
const SUGGESTED = 8;
/** Code, in which nothing is a mention. */
const CODE = /(```[\s\S]*?```|`[^`\n]*`)/u;

const quoted = (text) => text.replace(/[.*+?^${}()|[\]\\]/gu, '\\$&');

/** The people and the bot by name; a name of two people is nobody's. */
function byName() {
  const names = new Map();
  for (const user of [state.bot, ...state.people]) {
    const name = userName(user).toLowerCase();
    names.set(name, names.has(name) ? null : user.id);
  }
  return names;
}

/** The channels of the shown server by name. */
function channelsByName() {
  const guild = state.channels.get(state.channel)?.guild_id;
  const names = new Map();
  for (const channel of state.channels.values()) {
    if (channel.guild_id !== guild || !guild || channel.type === TYPE.CATEGORY) continue;
    const name = channel.name.toLowerCase();
    names.set(name, names.has(name) ? null : channel.id);
  }
  return names;
}

function replaceNames(text, sign, names, wire) {
  const known = [...names].filter(([name, id]) => name && id).map(([name]) => name);
  if (known.length === 0) return text;
  known.sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}<])${sign}(${known.map(quoted).join('|')})(?![\\p{L}\\p{N}])`, 'giu');
  return text.replace(pattern, (whole, name) => {
    const id = names.get(name.toLowerCase());
    return id ? wire(id) : whole;
  });
}

/** What is sent for what was typed. */
export function toWire(text) {
  const parts = text.split(CODE);
  return parts
    .map((part, at) => {
      if (at % 2 === 1) return part;
      const users = replaceNames(part, '@', byName(), (id) => `<@${id}>`);
      return replaceNames(users, '#', channelsByName(), (id) => `<#${id}>`);
    })
    .join('');
}

/** What is shown for editing what was sent. */
export function fromWire(content) {
  return content
    .replace(/<@!?(\d+)>/gu, (whole, id) => (state.users.has(id) ? typed('@', nameOf(id), byName(), whole) : whole))
    .replace(/<#(\d+)>/gu, (whole, id) => {
      const channel = state.channels.get(id);
      return channel?.name ? typed('#', channel.name, channelsByName(), whole) : whole;
    });
}

/** A name with its sign; the mention itself where the name could be somebody else's. */
function typed(sign, name, names, whole) {
  return names.get(name.toLowerCase()) ? sign + name : whole;
}

/** What is being completed: `{ sign, query, from }`, or null. */
export function queryAt(text, caret) {
  const found = /(?:^|[\s(:])([@#])([^\s@#`<>]{0,32})$/u.exec(text.slice(0, caret));
  if (!found) return null;
  return { sign: found[1], query: found[2].toLowerCase(), from: caret - found[2].length - 1 };
}

/** Who or what could be meant: `{ id, label, about, insert }`, the best first. */
export function suggestions({ sign, query }) {
  const all = sign === '@' ? people() : places();
  const fits = all.filter(({ name }) => name.toLowerCase().includes(query));
  fits.sort((a, b) => Number(b.name.toLowerCase().startsWith(query)) - Number(a.name.toLowerCase().startsWith(query)));
  return fits.slice(0, SUGGESTED);
}

function people() {
  const names = byName();
  return [state.bot, ...state.people].map((user) => {
    const name = userName(user);
    const about = user.id === state.bot.id ? 'the bot' : user.id === state.you ? 'you' : '';
    return { id: user.id, name, label: `@${name}`, about, insert: typed('@', name, names, `<@${user.id}>`) };
  });
}

function places() {
  const names = channelsByName();
  const guild = state.channels.get(state.channel)?.guild_id;
  return [...state.channels.values()]
    .filter((channel) => guild && channel.guild_id === guild && channel.type !== TYPE.CATEGORY)
    .map((channel) => ({
      id: channel.id,
      name: channel.name,
      label: placeName(channel),
      about: '',
      insert: typed('#', channel.name, names, `<#${channel.id}>`),
    }));
}
