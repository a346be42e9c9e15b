// Making elements. What people, models and servers wrote goes in as text nodes; the only
// markup that is ever parsed is the server's sanitised `html` of a message (`setServerHtml`).

/**
 * An element. `props` are attributes, but for `class`, `text`, `data` (dataset) and `on`
 * (listeners); null, undefined and false leave an attribute out. Children are nodes or text.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') node.className = value;
    else if (name === 'text') node.textContent = value;
    else if (name === 'data') Object.assign(node.dataset, value);
    else if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A `button` that does `act`. */
export function button(label, act, props = {}) {
  return el('button', { type: 'button', on: { click: act }, ...props }, label);
}

/** A table that scrolls by itself where it is too wide. */
export function table(label, props, ...children) {
  return el('div', { class: 'table', role: 'group', tabindex: '0', 'aria-label': label }, el('table', props, ...children));
}

/** A setting's name or a path, whose lines may end after `_`, `/`, `?` and `&`. */
export function breakable(text) {
  return text.split(/(?<=[_/?&])/u).flatMap((part) => [part, el('wbr')]);
}

/** The element with this id, which the page always has. */
export function byId(id) {
  return document.getElementById(id);
}

/** Shows markup that the server made and sanitised. Links open elsewhere and say nothing of us. */
export function setServerHtml(node, html) {
  node.innerHTML = html;
  for (const link of node.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
  }
}

/** Outlines on a grid of 16, drawn with the text's colour. */
const ICONS = {
  reply: 'M6.5 3 2.5 7l4 4M3 7h6a4 4 0 0 1 4 4v2',
  react: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM5.5 9.5c1 1.7 4 1.7 5 0M6 6.2v.3M10 6.2v.3',
  thread: 'M3 3h10v7H7l-3 3v-3H3ZM5.5 5.5h5M5.5 7.5h3',
  edit: 'm3 13 .6-2.9L10.8 3l2.2 2.2-7.1 7.2ZM9.5 4.3l2.2 2.2',
  remove: 'M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5 5 13.5h6l.5-9M7 7v4M9 7v4',
  why: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.3 6.4C6.4 4 9.8 4.2 9.6 6.4 9.5 7.7 8 7.7 8 9.2M8 11.3v.3',
  attach: 'm12.5 7.5-5 5a3 3 0 0 1-4.2-4.2l5.4-5.4a2 2 0 0 1 2.8 2.8L6.2 11a1 1 0 0 1-1.4-1.4l4.7-4.6',
  light: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1',
  dark: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z',
  close: 'm4 4 8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  more: 'M3 8h.3M8 8h.3M13 8h.3',
};

/** An icon; whoever shows it gives the control its label. */
export function icon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  svg.classList.add('icon');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** A control that shows an icon only. */
export function iconButton(name, label, act, props = {}) {
  return button(icon(name), act, { 'aria-label': label, title: label, ...props });
}

/** Says something to screen readers alone. */
export function announce(text) {
  byId('announcer').textContent = text;
}

/** Shows a sentence for some seconds; it is read out, too. */
export function toast(text, kind = 'error') {
  const box = byId('toasts');
  const note = el('div', { class: `toast ${kind}` }, el('p', { text }));
  note.append(iconButton('close', 'Close', () => note.remove(), { class: 'quiet icon-button' }));
  while (box.childElementCount >= 3) box.firstElementChild.remove();
  box.append(note);
  setTimeout(() => note.remove(), kind === 'error' ? 12_000 : 5_000);
}

/** Moves the focus among `items` by the arrow keys, Home and End. Whether the key was one of them. */
export function moveFocus(event, items, step = { ArrowDown: 1, ArrowUp: -1 }) {
  if (items.length === 0 || event.altKey || event.ctrlKey || event.metaKey) return false;
  const at = items.indexOf(document.activeElement);
  let next;
  if (event.key === 'Home') next = 0;
  else if (event.key === 'End') next = items.length - 1;
  else if (event.key in step) next = Math.max(0, Math.min(items.length - 1, at + step[event.key]));
  else return false;
  event.preventDefault();
  items[next].focus();
  return true;
}
