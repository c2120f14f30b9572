// What the stand-in knows.

const DAY = 86_400_000;

const stats = (tokens) => ({
  finish: 'stop', prompt_tokens: 820, reused_tokens: 640, generated_tokens: tokens, context_tokens: 820 + tokens,
  context_limit: 2048, load_ms: 0, ttft_ms: 118, prefill_tok_s: 1204.2, decode_tok_s: 61.3,
});

const plain = { reasoning: '', error: null, model: null, stats: null, version: 1, versions: 1 };

export const RICH = `An **inglenook** is a recess beside a large open fireplace: the warm corner where people sat. The word is Scots *ingle*, "fire", and *nook*.

## Keeping a fire

1. Open the damper and warm the flue.
2. Lay two logs, kindling across them, and one log on top.
3. Light it at the side that faces the draught.
   - Dry birch bark catches at once.
   - Don't use printed paper.

| Wood | Heat | Seasoning |
| :--- | ---: | :-------: |
| Oak | 4.2 kWh/kg | 2 years |
| Birch | 4.3 kWh/kg | 1 year |
| Spruce | 4.4 kWh/kg | 9 months |

A small script that tells how long a pile will last:

\`\`\`rust
/// Days that \`stack\` cubic metres keep a room warm.
fn days(stack_m3: f64, kwh_per_day: f64) -> Option<f64> {
    const KWH_PER_M3: f64 = 1_900.0; // dry birch, stacked
    if kwh_per_day <= 0.0 {
        return None;
    }
    Some(stack_m3 * KWH_PER_M3 / kwh_per_day)
}
\`\`\`

> Burn only what is dry: wet wood gives smoke instead of warmth.

- [x] Damper open
- [ ] Ash emptied

More at [the fire service](https://example.org/fire), or call \`days(3.0, 40.0)\`. ![a hearth](https://example.org/hearth.png)
`;

const chat = (n, title, ageMs, now, messages) => ({
  summary: { id: `c${n}`, title, model: 'starter', created_ms: now - ageMs, updated_ms: now - ageMs, active_turn: null },
  messages: messages ?? [
    { ...plain, id: `c${n}u`, parent: null, role: 'user', text: title, state: 'complete', created_ms: now - ageMs },
    { ...plain, id: `c${n}a`, parent: `c${n}u`, role: 'assistant', text: 'Certainly. Here is a short answer.', state: 'complete', stats: stats(9), created_ms: now - ageMs },
  ],
});

export const STORED = (now) => [
  chat(1, 'What is an inglenook?', 120_000, now, [
    { ...plain, id: 'c1u', parent: null, role: 'user', text: 'What is an inglenook, and how do I keep a fire in one?\nA table of woods would be nice.', state: 'complete', created_ms: now },
    { ...plain, id: 'c1a', parent: 'c1u', role: 'assistant', text: RICH, reasoning: 'They ask about fireplaces.\nI should be brief and give a table.', state: 'complete', stats: stats(412), created_ms: now, version: 2, versions: 3 },
    { ...plain, id: 'c1v', parent: 'c1a', role: 'user', text: 'And without a chimney?', state: 'complete', created_ms: now },
    { ...plain, id: 'c1b', parent: 'c1v', role: 'assistant', text: 'Then you need another kind of', state: 'interrupted', created_ms: now },
  ]),
  chat(2, 'Plan a quiet weekend in the mountains with two children and a dog', 7_200_000, now),
  chat(3, 'Rust lifetimes, explained slowly', DAY, now),
  chat(4, 'Rye bread', 1.2 * DAY, now),
  chat(5, 'Letter to the landlord', 3 * DAY, now),
  chat(6, 'Names for a small boat', 9 * DAY, now),
  chat(7, 'Winter tyres or all-season?', 15 * DAY, now),
  chat(8, 'Sonnet about a kettle', 50 * DAY, now),
  chat(9, 'مرحبا، كيف أضيف نموذجا؟', 80 * DAY, now),
];

export const MODELS = [
  { id: 'starter', name: 'Starter', source: 'built_in', path: null, bytes: 12_400_000, architecture: 'llama', parameters: 11_300_000, dtype: 'Q8_0', context_length: 2048, state: { state: 'ready' } },
  { id: 'm2', name: 'Llama 3.2 3B Instruct', source: 'file', path: '/home/ada/models/Llama-3.2-3B-Instruct-Q4_K_M.gguf', bytes: 2_019_377_696, architecture: 'llama', parameters: 3_212_749_888, dtype: 'Q4_K', context_length: 131_072, state: { state: 'unloaded' } },
  { id: 'm3', name: 'SmolLM3 3B', source: 'file', path: '/home/ada/models/SmolLM3-Q8_0.gguf', bytes: 3_275_574_624, architecture: 'smollm3', parameters: 3_075_098_624, dtype: 'Q8_0', context_length: 65_536, state: { state: 'loading', fraction: 0.43 } },
  { id: 'm4', name: 'Old experiment', source: 'file', path: '/mnt/usb/old.gguf', bytes: 44_000_000, architecture: 'llama', parameters: 42_000_000, dtype: 'F16', context_length: 1024, state: { state: 'unusable', error: { code: 'weights.missing', message: '/mnt/usb/old.gguf is not there.', remedy: 'Plug the drive in, or remove the entry.' } } },
];

const row = (key, section, label, help, kind, value) => ({ key, section, label, help, kind, default: value });

export const SETTINGS = [
  row('theme', 'Appearance', 'Theme', 'Light, dark, or as the system has it.', { kind: 'choice', options: [{ value: 'system', label: 'System' }, { value: 'light', label: 'Light' }, { value: 'dark', label: 'Dark' }] }, 'system'),
  row('send_key', 'Chat', 'Send with', 'The key that sends a message; the other one breaks the line.', { kind: 'choice', options: [{ value: 'enter', label: 'Enter' }, { value: 'mod_enter', label: 'Ctrl+Enter' }] }, 'enter'),
  row('model', 'Chat', 'Default model', 'Answers in new chats.', { kind: 'text', placeholder: 'starter' }, 'starter'),
  row('temperature', 'Answers', 'Temperature', 'Higher is more varied, 0 always takes the likeliest word.', { kind: 'number', min: 0, max: 2, step: 0.05 }, 0.7),
  row('top_k', 'Answers', 'Top k', 'Only the k likeliest tokens are drawn from; 0 means all.', { kind: 'integer', min: 0, max: 1000, absent: null }, 40),
  row('top_p', 'Answers', 'Top p', 'Only the likeliest tokens that together reach this share.', { kind: 'number', min: 0, max: 1, step: 0.01 }, 0.95),
  row('seed', 'Answers', 'Seed', 'The same seed gives the same answer.', { kind: 'integer', min: 0, max: 4294967295, absent: 'random' }, null),
  row('max_tokens', 'Answers', 'Longest answer', 'In tokens.', { kind: 'integer', min: 1, max: 1048576, absent: 'until the context is full' }, null),
  row('threads', 'Hardware', 'Threads', 'How many cores work on an answer.', { kind: 'integer', min: 1, max: 64, absent: 'all physical cores' }, null),
  row('kv', 'Hardware', 'Context memory', 'Half precision needs half the memory.', { kind: 'choice', options: [{ value: 'f32', label: 'Full (f32)' }, { value: 'f16', label: 'Half (f16)' }, { value: 'q8_0', label: 'Eight bits (q8_0)' }] }, 'f16'),
  row('log_prompts', 'Privacy', 'Write prompts into the log', 'Off unless you look for a fault.', { kind: 'toggle' }, false),
  row('data_dir', 'Privacy', 'Data folder', 'Changed by --data-dir or INGLENOOK_DATA.', { kind: 'read_only' }, '/home/ada/.local/share/inglenook'),
];

export const ANSWERS = [
  { when: /think/i, reasoning: 'The person wants me to think about it. '.repeat(12), text: RICH },
  { when: /fail/i, text: 'The answer begins well and then', fails: { code: 'engine.not_finite', message: 'The model computed a value that is not a number, in layer 7.', remedy: 'Try again; if it stays, check the model file with `nook inspect`.' } },
  { when: /long/i, text: (RICH + '\n\n').repeat(12) },
  { when: /huge/i, text: (RICH + '\n\n').repeat(120) },
  { when: /attack/i, text: 'Here: <img src=x onerror=alert(1)> <script>alert(2)</script> [click](javascript:alert(3)) ![x](http://127.0.0.1:9/leak) <iframe src="http://127.0.0.1:9/"></iframe>' },
  { when: /./, text: RICH },
];
