// Which messages of the chat belong to the explained context, and how: read off the state.

import { partAbout, partName } from './names.js';
import { state } from './store.js';

/**
 * Marks by message id: `{ kind, label, about }`. Kinds: `question`, `in`, `out` (left out, the
 * label is the cap), and while `Tune` is open `came` and `went`.
 */
export function marks() {
  const found = new Map();
  const turn = state.explained;
  if (!turn) return found;
  const tried = state.pane === 'tune' && state.preview?.trigger === turn.trigger && state.preview.changed;
  const preview = tried ? state.preview : null;
  const shown = preview ? preview.changed : turn;
  const before = new Set((preview ? preview.now : turn).included.map((each) => each.id));
  for (const each of shown.omitted) {
    const went = before.has(each.id);
    found.set(each.id, {
      kind: went ? 'went' : 'out',
      label: went ? `− ${each.cap}` : each.cap,
      about: went ? `goes out: ${each.why}` : `not in the prompt: ${each.why}`,
    });
  }
  for (const each of shown.included) {
    const came = !before.has(each.id);
    found.set(each.id, {
      kind: came ? 'came' : 'in',
      label: (came ? '+ ' : '') + partName(each.why),
      about: `${came ? 'comes into' : 'in'} the prompt: ${partAbout(each.why)}${each.shortened ? `, shortened, ${each.shortened}` : ''}`,
    });
  }
  if (!found.has(turn.trigger)) {
    found.set(turn.trigger, { kind: 'question', label: 'question', about: 'the question that is explained' });
  }
  return found;
}

/** How many there are of each kind. */
export function countMarks(all) {
  const sums = { question: 0, in: 0, out: 0, came: 0, went: 0 };
  for (const { kind } of all.values()) sums[kind] += 1;
  return sums;
}
