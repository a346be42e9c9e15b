// Starts the page: views first, then the state, then the stream of events.

import { attempt, become, loadState, openChannel } from './actions.js';
import { startChat } from './chat.js';
import { showHint, startComposer, suggest } from './composer.js';
import { byId, el } from './dom.js';
import { startEvents } from './events.js';
import { startFaults } from './faults.js';
import { startKeyboard } from './keyboard.js';
import { startList } from './list.js';
import { isThread, userName } from './names.js';
import { startSide } from './side.js';
import { startSidebar } from './sidebar.js';
import { on, state } from './store.js';
import { startTheme } from './theme.js';
import { startTune } from './tune.js';
import { startWhy } from './why.js';

/** What a newcomer may ask, where the server suggests nothing. */
const QUESTION = 'what is this about, and what was tried so far?';

function startPeople() {
  const select = byId('you');
  select.addEventListener('change', () => become(select.value));
  on('you places', () => {
    select.replaceChildren(...state.people.map((user) => el('option', { value: user.id, text: userName(user) })));
    select.value = state.you;
  });
}

function startConnection() {
  on('connection', (connected) => {
    byId('connection').textContent = connected ? '' : 'Not connected. Trying again…';
  });
}

/** Where to begin: the address's channel, or what the server suggests, or a thread. */
function firstChannel() {
  const wanted = location.hash.slice(1);
  if (state.channels.has(wanted)) return wanted;
  if (state.channels.has(state.suggestion?.channel)) return state.suggestion.channel;
  const all = [...state.channels.values()];
  return (all.find(isThread) ?? all.find((channel) => channel.type === 0) ?? all[0])?.id;
}

async function start() {
  for (const begin of [startTheme, startSide, startSidebar, startList, startChat, startComposer, startWhy, startTune, startFaults, startKeyboard, startPeople, startConnection]) begin();
  const loaded = await attempt(async () => (await loadState(), true));
  startEvents();
  if (!loaded) return;
  addEventListener('hashchange', () => {
    const wanted = location.hash.slice(1);
    if (wanted !== state.channel && state.channels.has(wanted)) openChannel(wanted);
  });
  const channel = firstChannel();
  if (!channel) return;
  await openChannel(channel);
  if (state.turns.size === 0) {
    suggest(state.suggestion?.content ?? `<@${state.bot.id}> ${QUESTION}`);
    showHint();
  }
  byId('text').focus();
}

start();
