// The chat around its messages: head, legend of the marks, who types, a forum's posts.

import { openChannel, select } from './actions.js';
import { postDialog, threadDialog, webhookDialog } from './dialogs.js';
import { button, byId, el } from './dom.js';
import { goToFirst } from './list.js';
import { countMarks, marks } from './marks.js';
import { count, fullTime, isForum, many, nameOf, placeAbout, placeName, tagNames, timeOf } from './names.js';
import { compareIds, on, state } from './store.js';

export function startChat() {
  on('channel places', showHead);
  on('explained preview pane', showLegend);
  on('typing', showTyping);
  on('channel', () => showTyping(state.channel));
}

function showHead() {
  const channel = state.channels.get(state.channel);
  if (!channel) return;
  byId('place-name').textContent = placeName(channel);
  byId('place-about').replaceChildren(placeAbout(channel), ...tagNames(channel).flatMap((name) => [' ', el('span', { class: 'tag', text: name })]));
  document.title = `${placeName(channel)} – Clew playground`;
  const forum = isForum(channel);
  const plain = [0, 5].includes(channel.type);
  byId('place-actions').replaceChildren(...[
    forum && button('New post', () => postDialog(channel), { class: 'primary' }),
    plain && button('New thread', () => threadDialog(channel)),
    !forum && channel.guild_id && button('Webhook post', () => webhookDialog(channel)),
  ].filter(Boolean));
  for (const id of ['composer', 'messages', 'older', 'typing']) byId(id).hidden = forum;
  byId('posts').hidden = !forum;
  if (forum) showPosts(channel);
}

/** The tag of a forum whose posts alone are shown. */
let chosenTag = null;

/** A forum's posts, the latest first, of one tag or of all. */
function showPosts(forum) {
  const tags = forum.available_tags ?? [];
  if (!tags.some((each) => each.id === chosenTag)) chosenTag = null;
  const posts = [...state.channels.values()].filter((each) => each.parent_id === forum.id);
  posts.sort((a, b) => compareIds(b.last_message_id ?? b.id, a.last_message_id ?? a.id));
  const shown = posts.filter((post) => !chosenTag || (post.applied_tags ?? []).includes(chosenTag));
  const filter = (label, id) => button(label, () => {
    chosenTag = id;
    showPosts(forum);
    byId('posts').querySelector('[aria-pressed="true"]').focus();
  }, { class: 'tag', 'aria-pressed': String(chosenTag === id) });
  const filters = [filter('All posts', null), ...tags.map((each) => filter(each.name, each.id))];
  const list = el('ul', {}, shown.map((post) => el('li', {}, postButton(post))));
  byId('posts').replaceChildren(...[
    tags.length > 0 && el('div', { class: 'row', role: 'group', 'aria-label': 'Tags' }, filters),
    shown.length > 0 ? list : el('p', { text: 'There is no such post yet.' }),
  ].filter(Boolean));
}

function postButton(post) {
  const about = `${nameOf(post.owner_id)} · ${many(post.message_count ?? 0, 'answer')} · ${fullTime(timeOf(post.id))}`;
  return button([
    el('b', { text: post.name }),
    el('span', { class: 'row' }, tagNames(post).map((name) => el('span', { class: 'tag', text: name }))),
    el('span', { class: 'small', text: about }),
  ], () => openChannel(post.id), { class: 'post' });
}

function showLegend() {
  const legend = byId('legend');
  legend.hidden = !state.explained;
  if (legend.hidden) return;
  const sums = countMarks(marks());
  const part = (kind, words) => sums[kind] > 0 && el('span', { class: 'key', data: { mark: kind }, text: `${count(sums[kind])} ${words}` });
  legend.replaceChildren(...[
    part('in', 'in the prompt'), part('out', 'left out'), part('came', 'would come in'), part('went', 'would go out'),
    button('Show first', () => goToFirst(['in', 'came']), { class: 'link' }),
    button('Clear', () => select(null), { class: 'link', 'aria-label': 'Clear the marks' }),
  ].filter(Boolean));
}

function showTyping(channel) {
  if (channel !== state.channel) return;
  const now = Date.now();
  const typing = [...(state.typing.get(channel) ?? [])].filter(([, until]) => until > now).map(([id]) => nameOf(id));
  byId('typing').textContent = typing.length > 0 ? `${typing.join(', ')} ${typing.length > 1 ? 'are' : 'is'} typing…` : '';
}
