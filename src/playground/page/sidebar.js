// The sidebar: servers with their channels, threads and forum posts, and direct messages.

import { openChannel, openDirect } from './actions.js';
import { button, byId, el, icon, moveFocus } from './dom.js';
import { openExportDialog } from './dialogs.js';
import { directPartner, isForum, isThread, placeName, TYPE, userName } from './names.js';
import { compareIds, emit, on, state } from './store.js';

/** How many threads of a channel are listed before "more". */
const THREADS = 6;

/** Channels whose threads are all listed. */
const unfolded = new Set();

export function startSidebar() {
  const places = byId('places');
  on('places you', render);
  on('channel', mark);
  on('unread', mark);
  places.addEventListener('keydown', (event) => {
    if (event.target.matches('button')) moveFocus(event, [...places.querySelectorAll('button')]);
  });
}

function render() {
  const places = byId('places');
  const focused = document.activeElement?.closest('#places [data-channel]')?.dataset.channel;
  places.replaceChildren(...state.guilds.map(guildSection), directSection(), toolsSection());
  mark();
  if (focused) entry(focused)?.focus();
}

function guildSection(guild) {
  const channels = [...state.channels.values()].filter((each) => each.guild_id === guild.id);
  const tops = channels.filter((each) => !isThread(each)).sort(byPosition);
  const children = (parent) => tops.filter((each) => (each.parent_id ?? null) === parent && each.type !== TYPE.CATEGORY);
  const list = (parent) => el('ul', {}, children(parent).map((each) => channelItem(each, channels)));
  const categories = tops.filter((each) => each.type === TYPE.CATEGORY);
  const parts = categories.map((each) => [el('h3', { text: each.name }), list(each.id)]);
  return el('section', {}, el('h2', { text: guild.name }), list(null), ...parts);
}

function byPosition(a, b) {
  return (a.position ?? 0) - (b.position ?? 0) || compareIds(a.id, b.id);
}

function channelItem(channel, channels) {
  const threads = channels.filter((each) => isThread(each) && each.parent_id === channel.id);
  threads.sort((a, b) => rank(b) - rank(a) || compareIds(b.last_message_id ?? b.id, a.last_message_id ?? a.id));
  const shown = unfolded.has(channel.id) ? threads : threads.slice(0, THREADS);
  const items = shown.map((each) => el('li', {}, placeButton(each, each.name)));
  if (shown.length < threads.length) {
    const label = `${threads.length - shown.length} more`;
    const more = button(label, () => {
      unfolded.add(channel.id);
      render();
      entry(shown.at(-1).id)?.focus();
    }, { class: 'place more', 'aria-label': `${label} in ${placeName(channel)}` });
    items.push(el('li', {}, more));
  }
  return el('li', {}, placeButton(channel, channel.name), items.length > 0 && el('ul', {}, items));
}

const rank = (thread) => Number(!thread.thread_metadata?.archived);

function placeButton(channel, label) {
  const sign = isForum(channel) ? '☰' : isThread(channel) ? '' : channel.type === TYPE.DM ? '@' : '#';
  const archived = channel.thread_metadata?.archived;
  const kind = isForum(channel) ? 'forum ' : isThread(channel) ? 'thread ' : '';
  return button(
    [sign && el('span', { class: 'sign', 'aria-hidden': 'true', text: sign }), el('span', { class: 'label', text: label }),
      archived && el('span', { class: 'small', text: 'archived' })],
    () => go(channel.id),
    { class: `place ${kind}`, data: { channel: channel.id }, title: label },
  );
}

/** Shows a channel; on a narrow screen the chat comes into view. */
export function go(id) {
  emit('view', 'chat');
  openChannel(id);
}

function directSection() {
  const own = (channel) => (channel.recipients ?? []).some((user) => user.id === state.you);
  const others = state.dms.filter((each) => !own(each));
  const mine = state.dms.find(own);
  const items = [...(mine ? [mine] : []), ...others].map((each) => el('li', {}, placeButton(each, directPartner(each))));
  const you = userName(state.users.get(state.you));
  const begin = button([icon('plus'), `Write to the bot as ${you}`], begins, { class: 'place more' });
  if (!mine) items.push(el('li', {}, begin));
  return el('section', {}, el('h2', { text: 'Direct messages' }), el('ul', {}, items));
}

function begins() {
  emit('view', 'chat');
  openDirect();
}

function toolsSection() {
  const open = button([icon('plus'), 'Open an exported channel…'], openExportDialog, { class: 'place more' });
  return el('section', {}, el('h2', { text: 'Your own channels' }), el('ul', {}, el('li', {}, open)));
}

const entry = (channel) => byId('places').querySelector(`[data-channel="${CSS.escape(channel)}"]`);

/** Marks the shown channel and those with something unread. */
function mark() {
  for (const place of byId('places').querySelectorAll('[data-channel]')) {
    const { channel } = place.dataset;
    if (channel === state.channel) place.setAttribute('aria-current', 'page');
    else place.removeAttribute('aria-current');
    const unread = state.unread.has(channel);
    if (place.classList.toggle('unread', unread) && !place.querySelector('.dot')) {
      place.append(el('span', { class: 'dot' }, el('span', { class: 'unseen', text: 'something new' })));
    }
    if (!unread) place.querySelector('.dot')?.remove();
  }
  entry(state.channel ?? '')?.scrollIntoView({ block: 'nearest' });
}
