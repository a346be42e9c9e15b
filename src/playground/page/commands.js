// Commands: which the shown channel offers, and what is being typed of one, as
// `/memory remember text:… everywhere:true`.

import { api } from './api.js';
import { toWire } from './mentions.js';
import { state } from './store.js';

/** The API's types of options. */
const TYPE = { SUBCOMMAND: 1, INTEGER: 4, BOOLEAN: 5, USER: 6, CHANNEL: 7, ROLE: 8, FILE: 11 };
/** The API's type of a command in the menu of a message. */
const ON_MESSAGE = 3;
/** How many suggestions are shown at once. */
const SUGGESTED = 8;

/** What is offered to one person in one channel: `{ name, about, options }`, sub-commands each for themselves. */
let offered = { key: null, commands: [], onMessages: [] };
/** The values of choices that were taken, by their names. */
const picked = new Map();

async function load() {
  const key = `${state.channel} ${state.you}`;
  if (offered.key !== key) {
    const all = await api.commands(state.channel, state.you);
    const isOnMessage = ({ type }) => type === ON_MESSAGE;
    offered = { key: null, commands: all.filter((one) => !isOnMessage(one)).flatMap(flat), onMessages: all.filter(isOnMessage).map(({ name }) => name) };
  }
  // The bot may not have registered them yet.
  if (offered.commands.length > 0) offered.key = key;
  return offered;
}

const commands = async () => (await load()).commands;

/** The names of those in the menu of a message. */
export const messageCommands = async () => (await load()).onMessages;

function flat({ name, description, options = [] }) {
  const inner = options.filter((each) => each.type === TYPE.SUBCOMMAND);
  const file = options.find((each) => each.type === TYPE.FILE)?.name;
  if (inner.length === 0) return [{ name, about: description, options: options.filter((each) => each.type !== TYPE.FILE), file }];
  return inner.map((each) => ({ name: `${name} ${each.name}`, about: each.description, options: each.options ?? [] }));
}

/** What a text calls: the command, and what is typed for which option; null if it calls none. */
function read(text, all) {
  const command = all.find(({ name }) => text === `/${name}` || text.startsWith(`/${name} `));
  if (!command) return null;
  const rest = text.slice(command.name.length + 1);
  const names = command.options.map((each) => each.name).join('|');
  const found = names ? [...rest.matchAll(new RegExp(`(?<=^|\\s)(${names}):`, 'gu'))] : [];
  const typed = found.map((each, nth) => ({
    option: command.options.find(({ name }) => name === each[1]),
    text: rest.slice(each.index + each[0].length, found[nth + 1]?.index).trim(),
  }));
  // What stands before the first name is the first option's.
  const lead = rest.slice(0, found[0]?.index).trim();
  if (lead) typed.unshift({ option: command.options[0], text: lead });
  return { command, typed, named: found.length > 0 };
}

/** The call that a text and what is attached make, as the server takes it; null if none. Throws what cannot be meant. */
export async function callOf(text, attached) {
  const call = text.startsWith('/') ? read(text, await commands()) : null;
  if (!call) return null;
  const options = {};
  for (const { option, text: value } of call.typed) {
    if (!option) throw new Error(`/${call.command.name} takes nothing more.`);
    options[option.name] = meant(call.command, option, value);
  }
  const { name, file } = call.command;
  if (attached.length > (file ? 1 : 0)) throw new Error(`/${name} takes ${file ? 'one file' : 'no files'}.`);
  return { command: name, options, files: attached.length > 0 ? { [file]: attached[0] } : {} };
}

/** The value that a text stands for. */
function meant(command, option, text) {
  const choice = option.choices?.find(({ name }) => name.toLowerCase() === text.toLowerCase());
  if (choice) return choice.value;
  if (option.type === TYPE.BOOLEAN && /^(true|false)$/iu.test(text)) return text.toLowerCase() === 'true';
  if (option.type === TYPE.INTEGER && /^-?\d+$/u.test(text)) return Number(text);
  if ([TYPE.USER, TYPE.CHANNEL].includes(option.type)) return /^<[@#](\d+)>$/u.exec(toWire(text))?.[1] ?? text;
  if (option.type === TYPE.ROLE) return roles().find(({ name }) => name.toLowerCase() === text.toLowerCase())?.id ?? text;
  return picked.get(`${command.name} ${option.name} ${text}`) ?? toWire(text);
}

/** The roles of the shown server. */
function roles() {
  const guild = state.channels.get(state.channel)?.guild_id;
  return state.guilds.find(({ id }) => id === guild)?.roles ?? [];
}

/** What a text that calls a command needs and takes; null if it calls none. */
export async function usage(text) {
  const call = text.startsWith('/') ? read(text, await commands()) : null;
  if (!call) return null;
  const { name, about, options } = call.command;
  return { name, about, options: options.map((each) => (each.required ? `${each.name}:` : `[${each.name}:]`)).join(' ') };
}

/** What could follow what is typed up to the caret: `{ from, found }`, or null. */
export async function commandSuggestions(text) {
  if (!text.startsWith('/')) return null;
  const all = await commands();
  const call = read(text, all);
  if (!call || text === `/${call.command.name}`) return names(text, all);
  const { command, typed } = call;
  const last = typed.at(-1);
  if (call.named && last.option.name) return values(command, last, text);
  const token = /(?<=\s)[^\s:]*$/u.exec(text)?.[0] ?? '';
  const open = command.options.filter((each) => !typed.some(({ option }) => option === each && text.includes(`${each.name}:`)));
  if (token === '' && !open.some((each) => each.required)) return null;
  const found = open.filter((each) => each.name.startsWith(token.toLowerCase()));
  return { from: text.length - token.length, found: found.map((each) => ({ label: `${each.name}:`, about: each.description, insert: `${each.name}:` })) };
}

function names(text, all) {
  const query = text.slice(1).toLowerCase();
  const found = all.filter(({ name }) => name.startsWith(query) || name.split(' ').at(-1).startsWith(query)).slice(0, SUGGESTED);
  return {
    from: 0,
    found: found.map(({ name, about, options }) => ({
      label: `/${name}`, about, insert: options[0]?.required ? `/${name} ${options[0].name}:` : `/${name}`,
    })),
  };
}

/** What an option's value could be. */
async function values(command, { option, text: typed }, text) {
  let all = option.choices ?? [];
  if (option.type === TYPE.BOOLEAN) all = ['true', 'false'].map((name) => ({ name }));
  if (option.type === TYPE.ROLE) all = roles().map(({ name }) => ({ name }));
  if (option.autocomplete) all = await api.choices(state.channel, { author: state.you, command: command.name, option: option.name, typed });
  const query = typed.toLowerCase();
  const found = all.filter(({ name }) => option.autocomplete || name.toLowerCase().includes(query)).slice(0, SUGGESTED);
  // Typed in full: nothing is left to suggest.
  if (found.some(({ name }) => name.toLowerCase() === query)) return null;
  return {
    from: text.length - /[^:]*$/u.exec(text)[0].trimStart().length,
    found: found.map(({ name, value }) => ({
      label: name, insert: name, took: () => value !== undefined && picked.set(`${command.name} ${option.name} ${name}`, value),
    })),
  };
}
