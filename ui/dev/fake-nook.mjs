// A stand-in for the application while the page is being worked on: the same use cases over HTTP,
// answers from a script. Never part of the build. `node dev/fake-nook.mjs [--port 8642] [--fast]`
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { ANSWERS, SETTINGS, STORED, MODELS } from './fake-data.mjs';

const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const PORT = Number(option('port', 8642));
const TOKEN_MS = process.argv.includes('--fast') ? 1 : 25;
const DIST = new URL('../dist/', import.meta.url).pathname;
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; " +
  "connect-src 'self'; frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'";

let nextId = 100;
const id = () => `f${nextId++}`;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (status, code, message, remedy) => Object.assign(new Error(message), { status, info: { code, message, remedy } });

const conversations = new Map(STORED(Date.now()).map((it) => [it.summary.id, it]));
const trash = new Map();
const models = MODELS.map((it) => ({ ...it }));
const settings = SETTINGS.map((it) => ({ ...it, value: it.default }));
const turns = new Map();
const listeners = new Set();

const publish = (event) => listeners.forEach((send) => send(event));
const changed = (it) => publish({ type: 'conversation_changed', conversation: it.summary });
const get = (key) => conversations.get(key) ?? (() => { throw fail(404, 'conversation.not_found', 'This conversation is not here any more.', 'Choose another one from the sidebar.'); })();
const row = (key) => settings.find((it) => it.key === key) ?? (() => { throw fail(400, 'setting.unknown', `There is no setting ${key}.`, ''); })();

function message(role, text, parent, state = 'complete') {
  return { id: id(), parent, role, text, reasoning: '', state, error: null, model: null, stats: null, created_ms: Date.now(), version: 1, versions: 1 };
}

function begin(it, prompt) {
  const answer = message('assistant', '', it.messages.at(-1).id, 'streaming');
  answer.model = it.summary.model;
  it.messages.push(answer);
  const turn = { id: id(), events: [], watchers: new Set(), cancelled: false };
  turns.set(turn.id, turn);
  it.summary.active_turn = turn.id;
  it.summary.updated_ms = Date.now();
  changed(it);
  void write(it, answer, turn, prompt);
  return { turn: turn.id, conversation: it.summary.id, user_message: answer.parent, assistant_message: answer.id };
}

async function write(it, answer, turn, prompt) {
  const emit = (kind) => {
    turn.events.push({ seq: turn.events.length + 1, turn: turn.id, kind });
    turn.watchers.forEach((wake) => wake());
  };
  const script = ANSWERS.find((a) => a.when.test(prompt));
  for (let i = 0; i <= 5 && !turn.cancelled; i++) { emit({ type: 'loading', fraction: i / 5 }); await wait(TOKEN_MS * 4); }
  for (let i = 0; i <= 5 && !turn.cancelled; i++) { emit({ type: 'prefill', done: i * 600, total: 3000 }); await wait(TOKEN_MS * 4); }
  for (const [type, text] of [['reasoning', script.reasoning ?? ''], ['text', script.text]]) {
    for (const piece of text.match(/\s*\S+|\s+$/g) ?? []) {
      if (turn.cancelled) break;
      answer[type] += piece;
      emit({ type, text: piece, ids: [1] });
      await wait(TOKEN_MS);
    }
  }
  const tokens = turn.events.length;
  const stats = { finish: turn.cancelled ? 'cancelled' : 'stop', prompt_tokens: 3000, reused_tokens: 120, generated_tokens: tokens, context_tokens: 3000 + tokens, context_limit: 8192, load_ms: 100, ttft_ms: 310, prefill_tok_s: 812.4, decode_tok_s: 42.1 };
  it.summary.active_turn = null;
  it.summary.updated_ms = Date.now();
  if (script.fails && !turn.cancelled) {
    Object.assign(answer, { state: 'failed', error: script.fails });
    emit({ type: 'failed', error: script.fails });
  } else {
    Object.assign(answer, { state: turn.cancelled ? 'stopped' : 'complete', stats });
    emit({ type: 'done', stats });
  }
  turn.over = true;
  turn.watchers.forEach((wake) => wake());
  changed(it);
}

const CALLS = {
  app_info: () => ({ version: '0.1.0', data_dir: '/home/ada/.local/share/inglenook', log_dir: '/home/ada/.local/share/inglenook/logs', cores: 8, isa: 'avx2' }),
  conversations_list: () => [...conversations.values()].map((it) => it.summary).sort((a, b) => b.updated_ms - a.updated_ms),
  conversation_get: (a) => get(a.id),
  conversation_prefetch: () => null,
  conversation_rename: (a) => { const it = get(a.id); it.summary.title = a.title; changed(it); return it.summary; },
  conversation_delete: (a) => { trash.set(a.id, get(a.id)); conversations.delete(a.id); publish({ type: 'conversation_removed', id: a.id }); return null; },
  conversation_restore: (a) => { const it = trash.get(a.id); conversations.set(a.id, it); changed(it); return it.summary; },
  conversation_set_model: (a) => { const it = get(a.id); it.summary.model = a.model; changed(it); return it.summary; },
  send: (a) => {
    if (/refuse/.test(a.text)) throw fail(409, 'turn.busy', 'This conversation is still answering.', 'Stop the answer first, or wait for it.');
    let it = a.conversation && get(a.conversation);
    if (!it) {
      it = { summary: { id: id(), title: a.text.slice(0, 60), model: a.model ?? 'starter', created_ms: Date.now(), updated_ms: Date.now(), active_turn: null }, messages: [], fold: null, compression: null };
      conversations.set(it.summary.id, it);
    }
    it.messages.push(message('user', a.text, it.messages.at(-1)?.id ?? null));
    return begin(it, a.text);
  },
  retry: (a) => {
    const it = get(a.conversation);
    const old = it.messages.pop();
    const started = begin(it, it.messages.at(-1).text);
    Object.assign(it.messages.at(-1), { version: old.versions + 1, versions: old.versions + 1 });
    return started;
  },
  turn_cancel: (a) => { const turn = turns.get(a.turn); if (turn) turn.cancelled = true; return null; },
  models_list: () => models,
  model_add: async (a) => {
    await wait(400);
    if (!a.path.endsWith('.gguf')) throw fail(400, 'weights.unknown_container', `${a.path} is neither GGUF nor safetensors.`, 'Choose a file that ends in .gguf.');
    const entry = { ...MODELS[1], id: id(), name: a.path.split('/').at(-1).replace('.gguf', ''), path: a.path };
    models.push(entry);
    publish({ type: 'model_changed', model: entry });
    return entry;
  },
  model_remove: (a) => { models.splice(models.findIndex((it) => it.id === a.id), 1); publish({ type: 'model_removed', id: a.id }); return null; },
  settings_list: () => settings,
  settings_set: (a) => { const it = row(a.key); if (a.value === 13) throw fail(400, 'setting.value', '13 brings bad luck.', 'Choose another number.'); it.value = a.value; publish({ type: 'setting_changed', row: it }); return it; },
  settings_reset: (a) => { const it = row(a.key); it.value = it.default; publish({ type: 'setting_changed', row: it }); return it; },
};

function stream(response, request) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
  return new Promise((resolve) => request.on('close', resolve));
}

async function turnEvents(turn, after, request, response) {
  if (!turn) throw fail(404, 'turn.unknown', 'This turn is over.', '');
  void stream(response, request);
  let sent = after;
  const wake = () => {
    for (; sent < turn.events.length; sent++) response.write(`data: ${JSON.stringify(turn.events[sent])}\n\n`);
    if (turn.over) { turn.watchers.delete(wake); response.end(); }
  };
  turn.watchers.add(wake);
  request.on('close', () => turn.watchers.delete(wake));
  wake();
}

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

function file(path, response) {
  const full = join(DIST, normalize(path === '/' ? '/index.html' : path));
  if (!full.startsWith(DIST) || !existsSync(full) || !statSync(full).isFile()) { response.writeHead(404).end(); return; }
  response.writeHead(200, { 'content-type': TYPES[extname(full)] ?? 'application/octet-stream', 'content-security-policy': CSP });
  createReadStream(full).pipe(response);
}

async function body(request) {
  let text = '';
  for await (const piece of request) text += piece;
  return JSON.parse(text || '{}');
}

async function handle(request, response) {
  const url = new URL(request.url, 'http://localhost');
  const watch = /^\/api\/turns\/([^/]+)\/events$/.exec(url.pathname);
  if (!url.pathname.startsWith('/api/')) return file(url.pathname, response);
  if (watch) return turnEvents(turns.get(watch[1]), Number(url.searchParams.get('after')), request, response);
  if (url.pathname === '/api/events') {
    const send = (event) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    listeners.add(send);
    await stream(response, request);
    return listeners.delete(send);
  }
  const call = CALLS[url.pathname.slice('/api/'.length)];
  if (!call) throw fail(404, 'call.unknown', `There is no ${url.pathname}.`, '');
  const result = await call(await body(request));
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
}

createServer((request, response) => {
  handle(request, response).catch((error) => {
    if (!error.info) console.error(error);
    const info = error.info ?? { code: 'fake.bug', message: String(error), remedy: 'Mend dev/fake-nook.mjs.' };
    response.writeHead(error.status ?? 500, { 'content-type': 'application/json' }).end(JSON.stringify({ error: info }));
  });
}).listen(PORT, '127.0.0.1', () => console.log(JSON.stringify({ listening: `http://127.0.0.1:${PORT}` })));
