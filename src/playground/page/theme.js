// Light or dark: as the system says, until the visitor switches.

import { byId, icon } from './dom.js';

const KEPT = 'clew-theme';
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const root = document.documentElement;

function isDark() {
  return root.dataset.theme ? root.dataset.theme === 'dark' : systemDark.matches;
}

function show() {
  const label = isDark() ? 'Switch to light' : 'Switch to dark';
  const switcher = byId('theme');
  switcher.replaceChildren(icon(isDark() ? 'light' : 'dark'));
  switcher.ariaLabel = label;
  switcher.title = label;
}

export function startTheme() {
  const kept = localStorage.getItem(KEPT);
  if (kept) root.dataset.theme = kept;
  byId('theme').addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    localStorage.setItem(KEPT, root.dataset.theme);
    show();
  });
  systemDark.addEventListener('change', show);
  show();
}
