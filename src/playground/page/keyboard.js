// Shortcuts that hold everywhere on the page.

import { openChannel } from './actions.js';
import { byId } from './dom.js';
import { helpDialog, jumpDialog } from './dialogs.js';
import { focusMessages, toEnd } from './list.js';
import { enter } from './side.js';
import { on, state } from './store.js';

/** Where the switch for shortcuts of a single key is kept. */
const KEPT = 'clew-single-keys';

/** What the dialog of shortcuts shows: keys, and what they do. */
export const SHORTCUTS = [
  [['Enter'], 'Send; Shift Enter begins a new line'],
  [['@', '#'], 'Mention a person or a channel while writing'],
  [['/'], 'At the beginning: a slash command'],
  [['↑'], 'In an empty field: edit your last message; in lists: move'],
  [['R', 'E', 'T', '+', 'Del', 'W', 'A'], 'On a message: reply, edit, thread, react, delete, why, commands'],
  [['Esc'], 'Close, or stop replying and editing'],
  [['Ctrl K'], 'Go to a channel'],
  [['Alt ↑', 'Alt ↓'], 'The channel above or below'],
  [['C'], 'Write a message'],
  [['M'], 'To the messages'],
  [['P'], 'To the channels'],
  [['W', 'S', 'F'], 'Why this answer, settings, faults'],
  [['?'], 'These shortcuts'],
];

export const singleKeys = () => localStorage.getItem(KEPT) !== 'off';
export const useSingleKeys = (whether) => localStorage.setItem(KEPT, whether ? 'on' : 'off');

const SINGLE = {
  c: () => byId('text').focus(),
  m: focusMessages,
  p: focusPlaces,
  w: () => enter('why'),
  s: () => enter('tune'),
  f: () => enter('faults'),
  '?': helpDialog,
};

export function startKeyboard() {
  byId('help').addEventListener('click', helpDialog);
  byId('jump').addEventListener('click', jumpDialog);
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const act = actOf(event);
    if (!act) return;
    event.preventDefault();
    act();
  });
  on('sent', () => {
    toEnd();
    byId('text').focus();
  });
}

function actOf(event) {
  const { key, target } = event;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && key.toLowerCase() === 'k') return jumpDialog;
  if (event.altKey && (key === 'ArrowUp' || key === 'ArrowDown')) return () => stepChannel(key === 'ArrowUp' ? -1 : 1);
  if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys()) return null;
  if (target.matches('textarea, select, input:not([type="radio"], [type="checkbox"], [type="range"])')) return null;
  return SINGLE[key.length === 1 ? key.toLowerCase() : key] ?? null;
}

function focusPlaces() {
  document.querySelector('.views [data-view="places"]').click();
  (document.querySelector('#places [aria-current]') ?? document.querySelector('#places button'))?.focus();
}

/** Opens the channel above or below in the sidebar. */
function stepChannel(step) {
  const places = [...document.querySelectorAll('#places [data-channel]')].map((each) => each.dataset.channel);
  const next = places[places.indexOf(state.channel) + step];
  if (next) openChannel(next);
}
