// The side pane's tabs, and which view a narrow screen shows.

import { byId, moveFocus } from './dom.js';
import { emit, on, state } from './store.js';

const TABS = ['why', 'tune', 'faults'];
/** Narrower than this, in px, one view is shown at a time; as in base.css. */
const narrow = matchMedia('(max-width: 999px)');
let view = 'chat';

export function startSide() {
  const tabs = TABS.map((name) => byId(`tab-${name}`));
  for (const name of TABS) byId(`tab-${name}`).addEventListener('click', () => emit('view', name));
  tabs[0].parentElement.addEventListener('keydown', (event) => {
    if (moveFocus(event, tabs, { ArrowRight: 1, ArrowLeft: -1 })) document.activeElement.click();
  });
  for (const each of document.querySelectorAll('.views [data-view]')) {
    each.addEventListener('click', () => emit('view', each.dataset.view));
  }
  on('view', show);
  selectTab('why');
  show('chat');
}

/** Brings a view to the front: on a wide screen that matters for the side pane's tabs only. */
function show(wanted) {
  view = wanted;
  document.body.dataset.view = wanted;
  if (TABS.includes(wanted)) selectTab(wanted);
  for (const each of document.querySelectorAll('.views [data-view]')) {
    if (each.dataset.view === wanted) each.setAttribute('aria-current', 'true');
    else each.removeAttribute('aria-current');
  }
}

function selectTab(name) {
  state.pane = name;
  for (const each of TABS) {
    const own = each === name;
    const tab = byId(`tab-${each}`);
    tab.setAttribute('aria-selected', String(own));
    tab.tabIndex = own ? 0 : -1;
    byId(each).hidden = !own;
  }
  emit('pane');
}

/** Brings a view to the front and the focus into it. */
export function enter(wanted) {
  emit('view', wanted);
  if (TABS.includes(wanted)) (narrow.matches ? byId(wanted) : byId(`tab-${wanted}`)).focus();
}

/** The view that is in front. */
export const currentView = () => view;
