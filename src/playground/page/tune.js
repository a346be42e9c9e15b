// "Tune": a control for each cap and context setting; the selected turn is collected again
// with the changed ones, and both results are compared.

import { change, resetSettings } from './actions.js';
import { lineDiff } from './diff.js';
import { breakable, button, byId, el, table, toast } from './dom.js';
import { count, many } from './names.js';
import { emit, on, state } from './store.js';
import { messageList } from './why.js';

const controls = new Map();

export function startTune() {
  on('settings', build);
  on('changed', (name) => (name ? show(name) : controls.forEach((_, each) => show(each))));
  on('preview explained', showResult);
  on('tune', (name) => {
    emit('view', 'tune');
    controls.get(name)?.focus();
  });
}

/** Makes the controls once; they are kept while only values change. */
function build() {
  const names = state.settings.map((each) => each.name).join();
  const pane = byId('tune');
  if (pane.dataset.names === names) {
    controls.forEach((_, each) => show(each));
    return;
  }
  pane.dataset.names = names;
  controls.clear();
  pane.replaceChildren(
    el('p', { class: 'lead', id: 'tune-lead' }),
    el('div', { class: 'result', id: 'tune-result', 'aria-live': 'polite' }),
    el('div', { class: 'settings' }, state.settings.map(control)),
  );
  controls.forEach((_, each) => show(each));
  showResult();
}

const valueOf = (setting) => state.changed.get(setting.name) ?? String(setting.value);
const find = (name) => state.settings.find((each) => each.name === name);

function control(setting) {
  const id = `setting-${setting.name}`;
  const kind = setting.choices ? choice : typeof setting.max === 'number' ? slider : field;
  const undo = button('Undo', () => change(setting.name, setting.value), { class: 'link undo', 'aria-label': `Undo the change of ${setting.name}` });
  return el('div', { class: 'setting', id: `box-${setting.name}` },
    el('div', { class: 'setting-head' }, el('label', { for: id, text: setting.name }), undo),
    kind(setting, id),
    el('p', { class: 'small', id: `${id}-about`, text: setting.about }));
}

function choice(setting, id) {
  const select = el('select', { id, 'aria-describedby': `${id}-about`, on: { change: () => change(setting.name, select.value) } },
    setting.choices.map((each) => el('option', { value: each, text: each })));
  controls.set(setting.name, select);
  return select;
}

function field(setting, id) {
  const input = el('input', { id, type: 'text', 'aria-describedby': `${id}-about`, on: { input: () => change(setting.name, input.value) } });
  controls.set(setting.name, input);
  return input;
}

/** A slider over round values, and a field for any value. */
function slider(setting, id) {
  const steps = stepsOf(setting);
  const range = el('input', {
    id, type: 'range', min: '0', max: String(steps.length - 1), step: '1', 'aria-describedby': `${id}-about`,
    on: { input: () => change(setting.name, steps[Number(range.value)]) },
  });
  const exact = el('input', {
    type: 'number', min: setting.min ?? 0, max: setting.max, step: Number.isInteger(setting.min) ? '1' : 'any',
    'aria-label': `${setting.name}, ${setting.unit ?? 'value'}`,
    on: { input: () => exact.value !== '' && exact.validity.valid && change(setting.name, exact.value) },
  });
  range.steps = steps;
  range.exact = exact;
  controls.set(setting.name, range);
  return el('div', { class: 'slider' }, range, exact, el('span', { class: 'unit small', text: setting.unit ?? '' }));
}

/** What a slider stops at: every value of a short range, else round ones, closer together where they are small. */
function stepsOf({ min = 0, max, value, default: usual }) {
  const steps = new Set([min, max, Number(value), Number(usual)]);
  const isWhole = Number.isInteger(min);
  if (isWhole && max - min <= 100) {
    for (let step = min; step <= max; step += 1) steps.add(step);
  } else {
    for (let scale = isWhole ? 1 : 0.1; scale <= max; scale *= 10) {
      for (const digit of [1, 1.5, 2, 3, 4, 5, 6, 8]) {
        const step = Math.round(digit * scale * 100) / 100;
        if ((!isWhole || Number.isInteger(step)) && step > min && step < max) steps.add(step);
      }
    }
  }
  return [...steps].filter(Number.isFinite).sort((a, b) => a - b);
}

/** Shows a setting's value in its control. */
function show(name) {
  const setting = find(name);
  const input = controls.get(name);
  const value = valueOf(setting);
  byId(`box-${name}`).classList.toggle('changed', state.changed.has(name));
  if (!input.steps) {
    if (input.value !== value) input.value = value;
    return;
  }
  const nearest = input.steps.reduce((best, step) => (Math.abs(step - value) < Math.abs(best - value) ? step : best));
  input.value = String(input.steps.indexOf(nearest));
  input.setAttribute('aria-valuetext', `${value} ${setting.unit ?? ''}`.trim());
  if (document.activeElement !== input.exact) input.exact.value = value;
}

function showResult() {
  const lead = byId('tune-lead');
  if (!lead) return;
  lead.textContent = state.selected
    ? 'Move a slider: the question is collected again at once. Nothing is posted, stored or counted.'
    : 'Ask the bot something first. Then each slider shows at once what would come into its prompt and what would go out.';
  const box = byId('tune-result');
  const { preview } = state;
  const folded = new Set([...box.querySelectorAll('details')].filter((each) => each.open).map((each) => each.dataset.part));
  box.classList.toggle('busy', preview?.status === 'busy');
  if (!preview && state.changed.size === 0) box.replaceChildren();
  else if (preview?.status === 'failed') box.replaceChildren(el('p', { class: 'notice warn', text: preview.error }), actionsRow());
  else if (preview?.changed) box.replaceChildren(...comparison(preview));
  else box.replaceChildren(actionsRow());
  for (const each of box.querySelectorAll('details')) if (folded.has(each.dataset.part)) each.open = true;
}

function actionsRow() {
  return el('p', { class: 'row' }, button('Undo all', resetSettings));
}

function comparison({ now, changed, env }) {
  const came = onlyIn(changed, now);
  const went = onlyIn(now, changed).map((each) => {
    const reason = changed.omitted.find((other) => other.id === each.id);
    return reason ? { ...each, cap: reason.cap, why: reason.why } : each;
  });
  const turn = { channel: state.explained?.channel ?? state.channel };
  const details = (part, title, content) => el('details', { class: 'part', data: { part } }, el('summary', { text: title }), content);
  return [
    figures(now, changed),
    came.length + went.length === 0 && el('p', { class: 'small', text: sameText(now, changed) }),
    el('p', { class: 'row' },
      button('Copy as .env', () => copy(env), { class: 'primary' }),
      button('Undo all', resetSettings)),
    el('pre', { class: 'env', tabindex: '0', 'aria-label': 'Changed settings as .env', text: env.trim() }),
    came.length > 0 && details('came', `Would come in: ${many(came.length, 'message')}`, messageList(came, turn)),
    went.length > 0 && details('went', `Would go out: ${many(went.length, 'message')}`, messageList(went, turn)),
    details('blocks', 'Both blocks, line by line', diff(now.block, changed.block)),
  ].filter(Boolean);
}

const onlyIn = (one, other) => {
  const there = new Set(other.included.map((each) => each.id));
  return one.included.filter((each) => !there.has(each.id));
};

const sameText = (now, changed) => (now.block === changed.block
  ? 'The block is the same: this question does not reach that limit.'
  : 'The same messages, but their text changes: see both blocks.');

function figures(now, changed) {
  const caps = [...new Set([...now.omitted, ...changed.omitted].map((each) => each.cap))];
  const lost = (context, cap) => context.omitted.filter((each) => each.cap === cap).length;
  const rows = [
    ['Messages', now.included.length, changed.included.length],
    ['Characters', now.chars, changed.chars],
    ['Tokens (estimated)', now.tokens, changed.tokens],
    ['Calls to Discord', now.fetches.length, changed.fetches.length],
    ...caps.map((cap) => [`Left out: ${cap}`, lost(now, cap), lost(changed, cap)]),
  ];
  const row = ([name, before, after]) => el('tr', { class: before === after ? '' : 'differs' },
    el('th', { scope: 'row' }, breakable(name)), el('td', { class: 'amount', text: count(before) }), el('td', { class: 'amount', text: count(after) }));
  return table('Now and changed', { class: 'compare' },
    el('thead', {}, el('tr', {}, el('th', { scope: 'col', text: 'This question' }), el('th', { scope: 'col', class: 'amount', text: 'now' }), el('th', { scope: 'col', class: 'amount', text: 'changed' }))),
    el('tbody', {}, rows.map(row)));
}

function diff(before, after) {
  const lines = lineDiff(before ?? '', after ?? '');
  const words = { added: 'comes in: ', removed: 'goes out: ' };
  const shown = lines.map(({ kind, text }) => el('span', { class: `line ${kind}` },
    kind !== 'same' && el('span', { class: 'unseen', text: words[kind] }), `${text}\n`));
  return el('pre', { class: 'block diff', tabindex: '0', 'aria-label': 'Both blocks' }, shown);
}

async function copy(env) {
  try {
    await navigator.clipboard.writeText(env);
    toast('Copied. Put these lines into the bot’s .env.', 'info');
  } catch {
    const shown = document.querySelector('#tune-result .env');
    getSelection().selectAllChildren(shown);
    toast('The browser did not allow copying: the lines are selected, press Ctrl C.', 'info');
  }
}
