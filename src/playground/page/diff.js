// Which lines of two texts differ.

/** The most cells of the table that is filled in; beyond that all lines in between count as changed. */
const CELLS = 4_000_000;
/** How many unchanged lines are shown around changed ones. */
const AROUND = 2;

/** The lines of both: `{ kind: 'same' | 'added' | 'removed', text }`; long unchanged stretches shrink to a line. */
export function lineDiff(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const lines = (kind, some) => some.map((text) => ({ kind, text }));
  return shorten([
    ...lines('same', a.slice(0, start)),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end), lines),
    ...lines('same', a.slice(a.length - end)),
  ]);
}

/** By the longest common subsequence. */
function middle(a, b, lines) {
  if ((a.length + 1) * (b.length + 1) > CELLS) return [...lines('removed', a), ...lines('added', b)];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const below = lengths[(i + 1) * width + j];
      const right = lengths[i * width + j + 1];
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(below, right);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push({ kind: 'same', text: a[i] });
      i += 1;
      j += 1;
    } else if (i < a.length && (j === b.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      found.push({ kind: 'removed', text: a[i] });
      i += 1;
    } else {
      found.push({ kind: 'added', text: b[j] });
      j += 1;
    }
  }
  return found;
}

function shorten(lines) {
  const near = new Set();
  lines.forEach(({ kind }, at) => {
    if (kind !== 'same') for (let each = at - AROUND; each <= at + AROUND; each += 1) near.add(each);
  });
  const shown = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (near.has(at)) {
      if (skipped > 0) shown.push({ kind: 'skipped', text: `… ${skipped} lines are the same …` });
      skipped = 0;
      shown.push(line);
    } else {
      skipped += 1;
    }
  });
  if (skipped > 0) shown.push({ kind: 'skipped', text: `… ${skipped} lines are the same …` });
  return shown;
}
