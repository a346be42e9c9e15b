// "Faults": how the simulated Discord misbehaves towards the bot.

import { disconnect, setFaults } from './actions.js';
import { button, byId, el } from './dom.js';
import { emit, on, state } from './store.js';

const DELAYS = [[0, 'none'], [500, 'half a second'], [2000, '2 seconds'], [8000, '8 seconds: longer than the bot waits']];
const STATUSES = [
  [null, 'answered as usual', ''],
  [403, '403 Forbidden', 'the bot may not read'],
  [429, '429 Too Many Requests', 'a rate limit'],
  [500, '500 Internal Server Error', 'an outage'],
];

export function startFaults() {
  on('faults', render);
  byId('faults-on').addEventListener('click', () => emit('view', 'faults'));
  render();
}

function render() {
  const { slow_ms: slow = 0, status = null } = state.faults;
  const focused = document.activeElement?.closest('#faults')?.querySelector(':focus')?.id;
  byId('faults').replaceChildren(
    el('h2', { text: 'What if Discord misbehaves?' }),
    el('p', { class: 'small', text: 'Faults hold for the calls with which the bot collects messages. Whatever happens, it still answers, and says in its context what it could not read.' }),
    group('Answers of Discord come late by', 'slow', DELAYS.map(([value, label]) => [value, label, '']), slow, (value) => setFaults({ slow_ms: value })),
    group('Calls are', 'status', STATUSES, status, (value) => setFaults({ status: value })),
    el('p', { class: 'row' },
      button('Disconnect the bot', disconnect, { id: 'disconnect' }),
      button('No faults', () => setFaults({ slow_ms: 0, status: null }), { id: 'no-faults', class: 'quiet' })),
    el('p', { class: 'small', text: 'A disconnected bot resumes its session and is told what it missed.' }));
  if (focused) byId(focused)?.focus();
  const chip = byId('faults-on');
  const parts = [slow > 0 && `${slow / 1000} s late`, status !== null && `HTTP ${status}`].filter(Boolean);
  chip.hidden = parts.length === 0;
  chip.textContent = parts.join(', ');
  chip.ariaLabel = `Fault switched on: ${parts.join(', ')}`;
}

function group(legend, name, choices, current, choose) {
  return el('fieldset', {}, el('legend', { text: legend }), choices.map(([value, label, about]) => {
    const id = `fault-${name}-${value ?? 'none'}`;
    return el('label', { class: 'choice', for: id },
      el('input', { type: 'radio', name, id, checked: value === current, on: { change: () => choose(value) } }),
      el('span', {}, label, about && el('span', { class: 'small', text: ` – ${about}` })));
  }));
}
