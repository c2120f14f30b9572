// Models of the stand-in: hub, downloads, endpoints, folders. No network, no files.

const GB = 1e9;
const fit = (verdict, tok_s, reason, bytes) => ({
  verdict, exact: true, context: 8192, kv: 'f16', needs: { weights: bytes, context: 0.5 * GB, activations: 0.05 * GB, vocabulary: 0.04 * GB, total: bytes + 0.59 * GB },
  free_bytes: 11.2 * GB, total_bytes: 16.6 * GB, card: null, longest_context: verdict === 'wont_fit' ? null : 65_536, tok_s, tok_s_full: tok_s && tok_s * 0.8, reason, measured: null,
});
export const fitOf = (bytes) => {
  if (bytes > 10.5 * GB) return fit('wont_fit', null, `Needs ${(bytes / GB + 0.6).toFixed(1)} GB, 11.2 GB are free.`, bytes);
  const tok_s = 38 / (bytes / GB);
  return fit(tok_s < 8 ? 'slow' : 'runs_well', tok_s, `Needs ${(bytes / GB + 0.6).toFixed(1)} GB of 11.2 GB free; about ${tok_s.toFixed(0)} tokens a second.`, bytes);
};

const offer = (id, name, family, repository, licence, good_at, capabilities) => ({ id, name, family, architecture: family, repository, files: '*.gguf', licence, good_at, capabilities, languages: [] });
const model = (repository, parameters, context_length, downloads, more = {}) => ({
  repository, format: 'gguf', architecture: 'llama', parameters, context_length, licence: 'apache-2.0', languages: ['en'], modality: 'text', downloads, likes: Math.round(downloads / 90),
  updated_ms: Date.now() - 9e9, gated: false, url: `https://hub.example/${repository}`, runs: true, offer: null, ...more,
});

const MODELS = [
  model('ggml-org/SmolLM3-3B-GGUF', 3_075_098_624, 65_536, 81_400, { languages: ['en', 'fr', 'es', 'de', 'it', 'pt'], offer: offer('smollm3-3b', 'SmolLM3 3B', 'smollm3', 'ggml-org/SmolLM3-3B-GGUF', 'Apache-2.0', 'Everyday questions in six European languages, long texts', ['thinking', 'tools']) }),
  model('ggml-org/gpt-oss-20b-GGUF', 20_900_000_000, 131_072, 402_000, { offer: offer('gpt-oss-20b', 'gpt-oss 20B', 'gpt-oss', 'ggml-org/gpt-oss-20b-GGUF', 'Apache-2.0', 'Reasoning and tools, quick for its size', ['thinking', 'tools', 'code']) }),
  model('bartowski/Llama-3.2-3B-Instruct-GGUF', 3_212_749_888, 131_072, 233_000, { gated: true, licence: 'llama3.2', offer: offer('llama-3.2-3b', 'Llama 3.2 3B', 'llama', 'bartowski/Llama-3.2-3B-Instruct-GGUF', 'Llama 3.2', 'Talking and summarising', ['tools']) }),
  model('unsloth/Qwen3-4B-Instruct-2507-GGUF', 4_022_468_096, 262_144, 190_200),
  model('TheDrummer/Fireside-12B-v2-GGUF', 12_247_782_400, 131_072, 8_600),
  model('mradermacher/Hearth-Coder-7B-i1-GGUF', 7_615_616_512, 32_768, 1_240),
];

const QUANTS = [['Q2_K', 0.39, 'small'], ['Q3_K_M', 0.48, 'small'], ['Q4_K_M', 0.6, 'balanced'], ['Q5_K_M', 0.71, 'balanced'], ['Q6_K', 0.82, 'large'], ['Q8_0', 1.06, 'large']];
const filesOf = (it) => QUANTS.map(([quantisation, factor, group]) => ({
  path: `${it.repository.split('/')[1].replace('-GGUF', '')}-${quantisation}.gguf`, parts: 1, bytes: Math.round(it.parameters * factor), quantisation, group,
  recommended: quantisation === 'Q4_K_M', trust: it.offer ? { kind: 'signed', key: 'inglenook' } : { kind: 'published' }, download: null,
}));

const error = (code, message, remedy) => ({ code, message, remedy });
const download = (id, repository, path, bytes, total, state, more = {}) => ({ id, repository, path, parts: 1, bytes, total, fetched: bytes, speed: 0, eta_s: null, state, notice: null, trust: { kind: 'published' }, created_ms: Number(id.slice(1)), ...more });
export const DOWNLOADS = [
  download('d1', 'ggml-org/SmolLM3-3B-GGUF', 'SmolLM3-Q4_K_M.gguf', 1.2 * GB, 1.9 * GB, { state: 'downloading' }, { speed: 12.4e6, eta_s: 57 }),
  download('d2', 'unsloth/Qwen3-4B-Instruct-2507-GGUF', 'Qwen3-4B-Instruct-2507-Q4_K_M.gguf', 0.8 * GB, 2.5 * GB, { state: 'paused', reason: null }),
  download('d3', 'bartowski/Llama-3.2-3B-Instruct-GGUF', 'Llama-3.2-3B-Instruct-Q4_K_M.gguf', 0, 2 * GB, { state: 'failed', error: error('hub.licence', 'This model’s licence has not been accepted with your account.', 'Open its page, accept it there, then try again.') }),
];

const ENDPOINTS = [
  { id: 'e1', name: 'Workstation', url: 'http://192.168.1.20:8642/v1', host: '192.168.1.20:8642', leaves_machine: true, is_readable: true, key: { type: 'kept' }, enabled: true, server: 'inglenook', models: [{ id: 'gpt-oss-20b', context_length: 131_072 }, { id: 'qwen3-32b', context_length: 65_536 }], health: { state: 'up' } },
  { id: 'e2', name: 'Lab', url: 'https://lab.example.org/v1', host: 'lab.example.org', leaves_machine: true, is_readable: false, key: { type: 'environment', variable: 'LAB_KEY' }, enabled: true, server: 'vllm', models: [], health: { state: 'down', error: error('remote.unreachable', 'lab.example.org doesn’t answer.', 'Look whether it runs; it is asked again by itself.') } },
];

export function hubCalls(publish, models) {
  let downloads = [...DOWNLOADS];
  let endpoints = [...ENDPOINTS];
  let token = { place: null, keeps: 'keychain' };
  const put = (it) => { downloads = [...downloads.filter((d) => d.id !== it.id), it]; publish({ type: 'download_changed', download: it }); return it; };
  const get = (id) => downloads.find((d) => d.id === id);
  const folders = [{ path: '/home/ada/.cache/huggingface/hub', source: 'hub_cache', models: 2, error: null }, { path: '/home/ada/.lmstudio/models', source: 'lm_studio', models: 1, error: null }, { path: '/mnt/usb/models', source: 'folder', models: 0, error: error('folder.missing', '/mnt/usb/models is not there.', 'Plug the drive in.') }];
  return {
    hub_search: (a) => {
      if (a.query === 'offline') return { models: MODELS.filter((it) => it.offer), next: null, offline: error('hub.unreachable', "huggingface.co can't be reached: dns error: failed to lookup address information.", 'Check your internet connection and try again.') };
      const words = a.query.toLowerCase().split(/\s+/).filter(Boolean);
      return { models: MODELS.filter((it) => words.every((w) => `${it.repository} ${it.offer?.name ?? ''}`.toLowerCase().includes(w))), next: null, offline: null };
    },
    hub_files: (a) => { const it = MODELS.find((m) => m.repository === a.repository || m.offer?.id === a.repository); return { model: it, revision: 'main', files: filesOf(it) }; },
    model_fit: (a) => fitOf(a.facts?.bytes ?? models.find((it) => it.id === a.id)?.bytes ?? 2 * GB),
    catalog_fits: () => MODELS.filter((it) => it.offer).map((it) => { const { bytes } = filesOf(it).find((file) => file.recommended); return { id: it.offer.id, facts: { bytes, parameters: it.parameters, context_length: it.context_length, dtype: 'q4_k_m' }, fit: fitOf(bytes) }; }),
    model_recommend: () => ({ id: 'smollm3-3b', reason: 'The best of the catalogue that answers faster than you read, with room for a long conversation.', fit: fitOf(1.9 * GB), choices: [['fast', 'qwen3.5-0.8b', 'Qwen3.5 0.8B', 0.53], ['balanced', 'smollm3-3b', 'SmolLM3 3B', 1.9], ['best', 'llama-3.1-8b', 'Llama 3.1 8B', 4.9]].map(([kind, id, name, gb]) => ({ kind, id, name, bytes: gb * GB, fit: fitOf(gb * GB) })) }),
    machine_measure: () => [{ format: 'q4_k', gb_s: 38 }],
    hub_token: () => token,
    hub_token_set: (a) => (token = { ...token, place: a.token === '' ? null : token.keeps }),
    download_list: () => downloads,
    download_start: (a) => { const it = MODELS.find((m) => m.repository === a.repository || m.offer?.id === a.repository); const file = filesOf(it).find((f) => (a.path ? f.path === a.path : f.recommended)); return put(download(`d${Date.now()}`, it.repository, file.path, 0, file.bytes, { state: 'downloading' }, { speed: 11e6, eta_s: file.bytes / 11e6 })); },
    download_pause: (a) => put({ ...get(a.id), speed: 0, eta_s: null, state: { state: 'paused', reason: null } }),
    download_resume: (a) => put({ ...get(a.id), speed: 12e6, eta_s: 60, state: { state: 'downloading' } }),
    download_cancel: (a) => { downloads = downloads.filter((d) => d.id !== a.id); publish({ type: 'download_removed', id: a.id }); return null; },
    endpoint_list: () => endpoints,
    endpoint_add: (a) => { const it = { ...ENDPOINTS[0], id: `e${Date.now()}`, name: a.name, url: a.url, host: new URL(a.url).host }; endpoints.push(it); return it; },
    endpoint_test: (a) => endpoints.find((it) => it.id === a.id),
    endpoint_update: (a) => { endpoints = endpoints.map((it) => (it.id === a.id ? { ...it, ...a } : it)); return endpoints.find((it) => it.id === a.id); },
    endpoint_remove: (a) => { endpoints = endpoints.filter((it) => it.id !== a.id); return null; },
    connections_list: () => [{ at_ms: Date.now() - 60_000, host: '192.168.1.20:8642', purpose: 'answer', sent: 4_210, received: 18_800 }, { at_ms: Date.now() - 4e6, host: 'huggingface.co', purpose: 'search', sent: 320, received: 51_200 }, { at_ms: Date.now() - 9e6, host: 'huggingface.co', purpose: 'download', sent: 900, received: 1_915_305_312 }],
    model_folders: () => folders,
    model_folder_add: (a) => { folders.push({ path: a.path, source: 'folder', models: 0, error: null }); return { folders, models }; },
    model_folder_remove: (a) => { folders.splice(folders.findIndex((it) => it.path === a.path), 1); return null; },
    models_scan: () => ({ folders, models }),
    library_use: () => ({ models: models.map((it) => ({ id: it.id, source: it.source, disk_bytes: it.bytes, made_bytes: 0 })), owned_bytes: 3.3 * GB, removed_bytes: 1.9 * GB, free_bytes: 212 * GB }),
    models_removed: () => [{ id: 'gone', name: 'Phi 3.5 mini', removed_ms: Date.now() - 8e7, disk_bytes: 1.9 * GB }],
    model_restore: () => models[1],
    models_purge: () => ({ count: 1 }),
    model_import: (a) => ({ ...models[1], id: 'imported', name: a.path.split('/').at(-1), path: a.path }),
    model_unload: (a) => { const it = models.find((m) => m.id === a.id); it.state = { state: 'unloaded' }; publish({ type: 'model_changed', model: it }); return null; },
  };
}
