// A stand-in for the application while developing the page: the same calls over HTTP,
// answers from a script, about thirty events a second. Never part of the build.
// `node dev/fake-nook.mjs [--port 8642] [--speed WORDS-PER-SECOND]`
import { createServer } from 'node:http';
import { fitOf, hubCalls } from './fake-hub.mjs';
import { MEMORY_CALLS } from './fake-memory.mjs';
import { PROFILE_CALLS } from './fake-profile.mjs';
import { localServerCalls } from './fake-local-server.mjs';
import { memoryShare, noteCalls } from './fake-notes.mjs';
import { draftCount, folderCalls, projectFile, projectOf } from './fake-projects.mjs';
import { toolCalls } from './fake-tools.mjs';
import { tuneCalls } from './fake-tunes.mjs';
import { ANSWERS, HELP_CALLS, MODELS, NO_OPTIONS, SETTINGS, STORED, summary } from './fake-data.mjs';
import { file } from './fake-page.mjs';
import { imageFields, originalOf } from './fake-images.mjs';

const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const PORT = Number(option('port', 8642));
const EVENT_MS = 33;
const SPEED = Number(option('speed', 60));
let nextId = 100;
const id = () => `f${nextId++}`;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (status, code, message, remedy) => Object.assign(new Error(message), { status, info: { code, message, remedy } });

const conversations = new Map(STORED(Date.now()).map((it) => [it.summary.id, it]));
const trash = new Map();
const models = MODELS.map((it) => ({ ...it, files: 1, disk_bytes: it.bytes, fit: it.source === 'remote' ? null : fitOf(it.bytes) }));
const settings = SETTINGS.map((it) => ({ ...it, value: it.default }));
let presets = [{ id: 'p1', name: 'Plain talk', options: { system_prompt: 'Answer plainly and briefly.', temperature: 0.2, top_k: null, top_p: null, min_p: null, repeat_penalty: null, seed: null, max_tokens: null, presence_penalty: null, frequency_penalty: null, samplers: null, stop: null, json_schema: null, thinking: null, reasoning_effort: null, preset: null }, compression: null }];
const turns = new Map();
const files = new Map();
const listeners = new Set();

const publish = (event) => listeners.forEach((send) => send(event));
const changed = (it) => publish({ type: 'conversation_changed', conversation: it.summary });
const get = (key) => conversations.get(key) ?? (() => { throw fail(404, 'conversation.not_found', 'This conversation is not here any more.', 'Choose another one from the sidebar.'); })();
const row = (key) => settings.find((it) => it.key === key) ?? (() => { throw fail(400, 'setting.unknown', `There is no setting ${key}.`, ''); })();

function message(role, text, parent, state = 'complete') {
  return { id: id(), parent, role, text, reasoning: '', tool_calls: [], state, error: null, model: null, stats: null, attachments: [], sources: [], created_ms: Date.now(), version: 1, versions: 1 };
}

function attached(name, buffer) {
  const kinds = { md: 'markdown', csv: 'csv', pdf: 'pdf', rs: 'code', py: 'code', docx: 'document', epub: 'document', html: 'document', xlsx: 'spreadsheet', pptx: 'presentation' };
  const info = { id: id(), name, kind: kinds[name.split('.').at(-1)] ?? 'text', bytes: buffer.length, findings: [], ...imageFields(name, buffer) };
  files.set(info.id, { info, text: buffer.toString() });
  return info;
}

function begin(it, prompt, quiet = false) {
  const answer = message('assistant', '', it.messages.at(-1).id, 'streaming');
  answer.model = it.summary.model;
  it.messages.push(answer);
  const turn = { id: id(), events: [], watchers: new Set(), cancelled: false };
  turns.set(turn.id, turn);
  it.summary.active_turn = turn.id;
  it.summary.updated_ms = Date.now();
  if (!quiet) changed(it);
  void write(it, answer, turn, prompt, quiet);
  return { turn: turn.id, conversation: it.summary.id, user_message: answer.parent, assistant_message: answer.id };
}

async function write(it, answer, turn, prompt, quiet) {
  const emit = (kind) => {
    turn.events.push({ seq: turn.events.length + 1, turn: turn.id, kind });
    turn.watchers.forEach((wake) => wake());
  };
  const script = ANSWERS.find((a) => a.when.test(prompt));
  for (let i = 0; i <= 5 && !turn.cancelled; i++) { emit({ type: 'loading', fraction: i / 5 }); await wait(EVENT_MS * 2); }
  for (let i = 0; i <= 5 && !turn.cancelled; i++) { emit({ type: 'prefill', done: i * 600, total: 3000 }); await wait(EVENT_MS * 2); }
  const atOnce = Math.max(1, Math.round((SPEED * EVENT_MS) / 1000));
  for (const [type, text] of [['reasoning', script.reasoning ?? ''], ['text', script.text]]) {
    const words = text.match(/\s*\S+|\s+$/g) ?? [];
    for (let at = 0; at < words.length && !turn.cancelled; at += atOnce) {
      const piece = words.slice(at, at + atOnce);
      answer[type] += piece.join('');
      emit({ type, text: piece.join(''), ids: piece.map(() => 1) });
      await wait(EVENT_MS);
    }
  }
  const tokens = turn.events.reduce((sum, it) => sum + (it.kind.ids?.length ?? 0), 0);
  const stats = { finish: turn.cancelled ? 'cancelled' : (script.ends ?? 'stop'), prompt_tokens: 3000, reused_tokens: 120, generated_tokens: tokens, drafted_tokens: 0, accepted_tokens: 0, context_tokens: 3000 + tokens, context_limit: 8192, load_ms: 100, ttft_ms: 310, prefill_tok_s: 812.4, decode_tok_s: 42.1, once: turn.once ?? null };
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
  if (!quiet) changed(it);
}

const CALLS = {
  // As a page in a browser gets it: the window alone updates the program.
  update_info: () => ({ method: 'not_here', package: 'source', hosts: [], page: null, phase: { name: 'unknown' }, offer: null, checked_ms: null, error: null }),
  app_info: () => ({ version: '0.1.0', data_dir: '/home/ada/.local/share/inglenook', log_dir: '/home/ada/.local/share/inglenook/logs', cores: 8, isa: 'avx2' }),
  conversations_list: () => [...conversations.values()].map((it) => it.summary).sort((a, b) => b.updated_ms - a.updated_ms),
  conversation_get: (a) => get(a.id),
  conversation_prefetch: () => null,
  conversation_pin: (a) => { const it = get(a.id); it.summary.pinned = a.pinned; changed(it); return it.summary; },
  conversation_move: (a) => { const it = get(a.id); it.summary.folder = a.folder; changed(it); return it.summary; },
  conversation_options: (a) => { const it = get(a.id); it.options = a.options; changed(it); return it.summary; },
  ...HELP_CALLS,
  ...localServerCalls(row, fail),
  trash_list: () => [...trash.values()].map((it) => ({ ...it.summary, deleted_ms: Date.now() })),
  search: (a) => {
    const found = (text) => text.toLowerCase().indexOf(a.query.toLowerCase());
    const all = [...conversations.values()];
    const titles = all.filter((it) => found(it.summary.title) >= 0).map((it) => ({ conversation: it.summary.id, title: it.summary.title }));
    const messages = all.flatMap(({ summary: of, messages: list }) => list.filter((it) => found(it.text) >= 0).map((it) => {
      const [at, end] = [found(it.text), found(it.text) + a.query.length];
      const snippet = [{ text: it.text.slice(Math.max(0, at - 40), at), hit: false }, { text: it.text.slice(at, end), hit: true }, { text: it.text.slice(end, end + 60), hit: false }];
      return { conversation: of.id, title: of.title, message: it.id, role: it.role, created_ms: it.created_ms, snippet };
    }));
    return { titles, messages };
  },
  text_scan: (a) => (/[\u200b-\u200f\u202a-\u202e\u2060-\u2064]/.test(a.text) ? [{ type: 'hidden', at: 0, count: 1, names: ['U+202E'] }] : []),
  draft_count: draftCount,
  context_parts: (a) => { const project = projectOf(a.conversation ? get(a.conversation).options.project : a.folder); const own = project && { folder: project.folder, name: project.name, instructions: 64, files: project.files.length * 120 }; return { before: a.conversation ? 1200 : 160 + (own?.files ?? 0), system: 64, tools: 96, files: (a.conversation ? 310 : 0) + (own?.files ?? 0), ...memoryShare((a.options?.memory ?? row('memory').value) === true), ...(own && { project: own }) }; },
  attachment_add: ({ name, base64 }) => attached(name, Buffer.from(base64, 'base64')),
  attachment_image: ({ id }) => originalOf(files.get(id).info), attachment_remove: () => null,
  attachment_text: ({ id }) => { const { info, text } = files.get(id) ?? projectFile(id); return { attachment: info, text, start: 0, total: text.length }; },
  message_tokens: (a) => {
    const it = [...conversations.values()].flatMap((c) => c.messages).find((m) => m.id === a.message);
    const words = it.text.match(/\s*\S+/g) ?? [];
    return words.map((text, i) => {
      const probability = i % 7 === 3 ? 0.18 : i % 5 === 2 ? 0.55 : 0.93;
      const others = [' hearth', ' warmth', ' log', ' smoke', '\n'].map((other, n) => ({ id: n, text: other, probability: (1 - probability) / (n + 2) }));
      return { token: { id: 99, text, probability }, others: [{ id: 99, text, probability }, ...others].sort((x, y) => y.probability - x.probability) };
    });
  },
  message_choose: (a) => [...conversations.values()].find((it) => it.messages.some((m) => m.id === a.message)).summary,
  message_pick: (a) => CALLS.message_regenerate(a),
  message_fork: (a) => {
    const from = [...conversations.values()].find((it) => it.messages.some((m) => m.id === a.message));
    const upto = from.messages.findIndex((m) => m.id === a.message) + 1;
    const it = { ...from, summary: summary({ id: id(), title: from.summary.title, created_ms: Date.now(), updated_ms: Date.now() }), messages: from.messages.slice(0, upto).map((m) => ({ ...m, id: id() })) };
    conversations.set(it.summary.id, it);
    changed(it);
    return it.summary;
  },
  message_regenerate: (a) => {
    const it = [...conversations.values()].find((c) => c.messages.some((m) => m.id === a.message));
    const old = it.messages.pop();
    const started = begin(it, it.messages.at(-1).text);
    turns.get(started.turn).once = a.once ?? null;
    Object.assign(it.messages.at(-1), { version: old.versions + 1, versions: old.versions + 1 });
    return started;
  },
  answer_edit: (a) => {
    const it = [...conversations.values()].find((c) => c.messages.some((m) => m.id === a.message));
    const at = it.messages.findIndex((m) => m.id === a.message);
    const old = it.messages[at];
    it.messages.splice(at, it.messages.length, { ...old, id: id(), text: a.text, reasoning: '', stats: null, state: 'complete', version: old.versions + 1, versions: old.versions + 1 });
    changed(it);
    return it.summary;
  },
  conversation_rename: (a) => { const it = get(a.id); it.summary.title = a.title; changed(it); return it.summary; },
  conversation_delete: (a) => { trash.set(a.id, get(a.id)); conversations.delete(a.id); publish({ type: 'conversation_removed', id: a.id }); return null; },
  conversation_restore: (a) => { const it = trash.get(a.id); conversations.set(a.id, it); changed(it); return it.summary; },
  conversation_set_model: (a) => { const it = get(a.id); it.summary.model = a.model; changed(it); return it.summary; },
  send: (a) => {
    if (/refuse/.test(a.text)) throw fail(409, 'turn.busy', 'This conversation is still answering.', 'Stop the answer first, or wait for it.');
    let it = a.conversation && get(a.conversation);
    if (!it) {
      it = { summary: summary({ id: id(), title: a.text.slice(0, 60), model: a.model ?? 'starter', created_ms: Date.now(), updated_ms: Date.now() }), messages: [], compaction: null, compression: null, options: a.options ?? NO_OPTIONS };
      it.summary.folder = a.folder ?? null;
      conversations.set(it.summary.id, it);
    }
    const question = message('user', a.text, it.messages.at(-1)?.id ?? null);
    const given = a.conversation ? [] : (projectOf(a.folder)?.files ?? []).map((file) => ({ ...file, id: id(), from_project: true }));
    question.attachments = [...given, ...(a.attachments ?? []).map((key) => files.get(key).info)].map((file) => ({ ...file, whole: true, tokens: 120, is_about: false }));
    it.messages.push(question);
    return begin(it, a.text);
  },
  temporary_send: (a) => {
    const it = { summary: summary({ id: id(), title: '', updated_ms: Date.now() }), messages: [message('user', '', null)] };
    return { turn: begin(it, a.messages.at(-1).text, true).turn };
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
  presets_list: () => presets,
  preset_save: (a) => { const it = { ...a, id: a.id ?? id() }; presets = [...presets.filter((p) => p.id !== it.id), it]; publish({ type: 'preset_changed', preset: it }); return it; },
  preset_remove: (a) => { presets = presets.filter((p) => p.id !== a.id); publish({ type: 'preset_removed', id: a.id }); return null; },
  model_settings: () => settings.filter((it) => it.at_load),
  model_setting_set: (a) => settings.filter((it) => it.at_load).map((it) => (it.key === a.key && a.value !== null ? { ...it, value: a.value } : it)),
};
const HUB_CALLS = { ...hubCalls(publish, models), ...toolCalls(publish), ...folderCalls(publish, id), ...noteCalls(publish, id), ...tuneCalls(publish, fail), ...PROFILE_CALLS, ...MEMORY_CALLS };

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
  const name = url.pathname.slice('/api/'.length);
  const call = CALLS[name] ?? HUB_CALLS[name];
  if (!call) throw fail(404, 'call.unknown', `There is no ${url.pathname}.`, '');
  const result = await call(await body(request));
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    if (!error.info) console.error(error);
    const info = error.info ?? { code: 'fake.bug', message: String(error), remedy: 'Mend dev/fake-nook.mjs.' };
    response.writeHead(error.status ?? 500, { 'content-type': 'application/json' }).end(JSON.stringify({ error: info }));
  });
});
server.listen(PORT, '127.0.0.1', () => console.log(JSON.stringify({ listening: `http://127.0.0.1:${server.address().port}` })));
