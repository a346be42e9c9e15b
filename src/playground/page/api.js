// Requests to the playground's server, each with the token of the page's link, and its stream of events.

const token = new URLSearchParams(location.search).get('token') ?? '';

/** A refused request; its message is the server's own sentence. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(method, path, body, signal) {
  const headers = { 'X-Clew-Token': token };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The playground does not answer. Is `clew playground` still running?');
  }
  const text = await response.text();
  let value = null;
  try {
    value = text === '' ? null : JSON.parse(text);
  } catch {
    throw new ApiError(response.status, `The playground answered ${response.status} with something that is not JSON.`);
  }
  if (!response.ok) throw new ApiError(response.status, value?.error ?? `The playground answered ${response.status}.`);
  return value;
}

const get = (path, signal) => request('GET', path, undefined, signal);
const channel = (id) => `/api/channels/${encodeURIComponent(id)}`;
const message = (place, id) => `${channel(place)}/messages/${encodeURIComponent(id)}`;
const turn = (trigger) => `/api/turns/${encodeURIComponent(trigger)}`;

export const api = {
  state: () => get('/api/state'),
  messages: (place, limit, before) =>
    get(`${channel(place)}/messages?limit=${limit}${before ? `&before=${encodeURIComponent(before)}` : ''}`),
  post: (place, draft) => request('POST', `${channel(place)}/messages`, draft),
  edit: (place, id, content) => request('PATCH', message(place, id), { content }),
  remove: (place, id) => request('DELETE', message(place, id)),
  react: (place, id, author, emoji) => request('PUT', `${message(place, id)}/reactions`, { author, emoji }),
  unreact: (place, id, author, emoji) => request('DELETE', `${message(place, id)}/reactions`, { author, emoji }),
  thread: (place, thread) => request('POST', `${channel(place)}/threads`, thread),
  webhook: (place, name, content, proxied) => request('POST', `${channel(place)}/webhook`, { name, content, is_proxied: proxied }),
  commands: (place, author) => get(`${channel(place)}/commands?author=${encodeURIComponent(author)}`),
  call: (place, call) => request('POST', `${channel(place)}/commands`, call),
  choices: (place, typing) => request('POST', `${channel(place)}/choices`, typing),
  press: (place, id, author, button) => request('POST', `${message(place, id)}/press`, { author, button }),
  direct: (author) => request('POST', '/api/dms', { author }),
  turn: (trigger, signal) => get(turn(trigger), signal),
  preview: (trigger, settings, signal) => request('POST', `${turn(trigger)}/preview`, { settings }, signal),
  faults: (faults) => request('PUT', '/api/faults', faults),
  disconnect: () => request('POST', '/api/faults/disconnect', {}),
  open: (path) => request('POST', '/api/open', { path }),
};

/** The longest event that is read, in characters; a server that sends more is not ours. */
const LONGEST_EVENT = 16 * 1024 * 1024;
/** Pauses before the stream is opened again, in milliseconds. */
const PAUSES = [250, 500, 1000, 2000, 5000];

/** Reads the stream of events for as long as the page lives: `heard(event, data)`, `connected(whether)`. */
export async function listen(heard, connected) {
  for (let failures = 0; ; failures += 1) {
    try {
      const response = await fetch('/api/events', { headers: { 'X-Clew-Token': token } });
      if (!response.ok) throw new ApiError(response.status, 'no events');
      failures = 0;
      connected(true);
      await readEvents(response.body, heard);
    } catch (error) {
      console.info('the stream of events ended:', error.message);
    }
    connected(false);
    await new Promise((done) => setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]));
  }
}

async function readEvents(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value.replaceAll('\r', '');
    const events = rest.split('\n\n');
    rest = events.pop();
    if (rest.length > LONGEST_EVENT) throw new Error('an event is too long');
    for (const event of events) hear(event, heard);
  }
}

function hear(event, heard) {
  let name = 'message';
  const data = [];
  for (const line of event.split('\n')) {
    if (line.startsWith('event:')) name = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  if (data.length === 0) return;
  let value = null;
  try {
    value = JSON.parse(data.join('\n'));
  } catch {
    // `event: state` needs no data that means anything.
  }
  heard(name, value);
}
