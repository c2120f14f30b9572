// Data of the stand-in.

const DAY = 86_400_000;

const stats = (tokens) => ({
  finish: 'stop', prompt_tokens: 820, reused_tokens: 640, generated_tokens: tokens, drafted_tokens: 40, accepted_tokens: 31,
  context_tokens: 820 + tokens, context_limit: 2048, load_ms: 0, ttft_ms: 118, prefill_tok_s: 1204.2, decode_tok_s: 61.3,
});

const plain = { reasoning: '', tool_calls: [], error: null, model: 'starter', stats: null, attachments: [], sources: [], version: 1, versions: 1 };

export const NO_OPTIONS = { system_prompt: null, temperature: null, top_k: null, top_p: null, min_p: null, repeat_penalty: null, seed: null, max_tokens: null, presence_penalty: null, frequency_penalty: null, samplers: null, stop: null, json_schema: null, thinking: null, reasoning_effort: null, image_detail: null, tools: null, preset: null, memory: null, project: null };

export const summary = (over) => ({ model: 'starter', active_turn: null, folder: null, pinned: false, deleted_ms: null, revision: 1, activity: over.updated_ms, ...over });

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

The heat of a log of mass $m$ and moisture $w$ is about $H = m\\,(1 - w)\\,q - 2.44\\,m\\,w$, and over a night

$$
\\int_0^T P(t)\\,dt = \\sum_{i=1}^{n} \\frac{m_i\\, q_i}{1 + e^{-\\lambda t_i}}
$$

More at [the fire service](https://example.org/fire), or call \`days(3.0, 40.0)\`. ![a hearth](https://example.org/hearth.png)
`;

const chat = (n, title, ageMs, now, messages) => ({
  summary: summary({ id: `c${n}`, title, created_ms: now - ageMs, updated_ms: now - ageMs, pinned: n === 4, folder: n === 5 || n === 7 ? 'f1' : null }),
  compaction: null, compression: null, options: NO_OPTIONS,
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
  { id: 'starter', name: 'Starter', source: 'built_in', path: null, bytes: 12_400_000, architecture: 'llama', parameters: 11_300_000, dtype: 'Q8_0', context_length: 2048, skills: { tools: false, thinking: 'never', images: false, image_detail: false }, state: { state: 'ready' } },
  { id: 'm2', name: 'Llama 3.2 3B Instruct', source: 'file', path: '/home/ada/models/Llama-3.2-3B-Instruct-Q4_K_M.gguf', bytes: 2_019_377_696, architecture: 'llama', parameters: 3_212_749_888, dtype: 'Q4_K', context_length: 131_072, skills: { tools: true, thinking: 'never', images: false, image_detail: false }, state: { state: 'unloaded' } },
  { id: 'm3', name: 'SmolLM3 3B', source: 'file', path: '/home/ada/models/SmolLM3-Q8_0.gguf', bytes: 3_275_574_624, architecture: 'smollm3', parameters: 3_075_098_624, dtype: 'Q8_0', context_length: 65_536, skills: { tools: true, thinking: 'switched', images: false, image_detail: false }, state: { state: 'loading', fraction: 0.43 } },
  { id: 'm4', name: 'Old experiment', source: 'file', path: '/mnt/usb/old.gguf', bytes: 44_000_000, architecture: 'llama', parameters: 42_000_000, dtype: 'F16', context_length: 1024, state: { state: 'unusable', error: { code: 'weights.missing', message: '/mnt/usb/old.gguf is not there.', remedy: 'Plug the drive in, or remove the entry.' } } },
  { id: 'remote:m', name: 'm', source: 'remote', path: null, bytes: 0, architecture: '', parameters: 0, dtype: '', context_length: 131_072, remote: { endpoint: 'Workstation', hosts: ['192.168.1.20:8642'], leaves_machine: true, is_readable: true, note: 'Your messages leave this computer and go to 192.168.1.20:8642. The connection is not encrypted (HTTP).' }, state: { state: 'ready' } },
];

const row = (key, section, group, label, help, kind, value) => ({ key, section, group, at_load: section === 'Hardware', label, help, kind, default: value });
const choice = (...options) => ({ kind: 'choice', options: options.map(([value, label]) => ({ value, label })) });

export const SETTINGS = [
  row('model', 'General', 'General', 'Default model', 'Used for new chats.', { kind: 'text', placeholder: 'starter' }, 'starter'),
  row('titles', 'General', 'General', 'Generate chat titles', 'The model names a chat after its first answer, when it is idle. Titles you enter stay unchanged.', { kind: 'toggle' }, true),
  row('notify', 'General', 'General', 'Notify me when a long answer is done', 'Only if the window is in the background and the answer took at least ten seconds.', { kind: 'toggle' }, true),
  row('welcome', 'General', 'General', 'Welcome tour', 'Shows the welcome tour when the window opens and there are no chats yet.', { kind: 'toggle' }, true),
  row('language', 'General', 'General', 'Language', 'Language of the interface. Models answer in the language you write in.', choice(['system', 'System'], ['en', 'English'], ['de', 'Deutsch'], ['ja', '日本語'], ['ar', 'العربية']), 'system'),
  row('server_port', 'Local server', 'Server', 'Port', 'Programs reach the server at this port of this computer.', { kind: 'integer', min: 1, max: 65535, absent: null }, 8642),
  row('server_devices', 'Local server', 'Server', 'Allow other devices', 'Phones and computers in your network can connect with the key. The connection is not encrypted (HTTP), so turn this on only in networks you trust.', { kind: 'toggle' }, false),
  row('server_start', 'Local server', 'Server', 'Start with the window', 'Starts the server whenever the window opens.', { kind: 'toggle' }, false),
  row('start_with', 'General', 'General', 'Open at start', 'What the window shows when it opens.', choice(['new', 'New chat'], ['last', 'Last open chat']), 'new'),
  row('theme', 'Appearance', 'Display', 'Theme', 'Light, dark or the same as the system.', choice(['system', 'System'], ['light', 'Light'], ['dark', 'Dark']), 'system'),
  row('accent', 'Appearance', 'Display', 'Accent color', 'Color of buttons, links and what is selected.', choice(['ember', 'Ember'], ['blue', 'Blue'], ['green', 'Green'], ['violet', 'Violet'], ['rose', 'Rose'], ['gray', 'Gray']), 'ember'),
  row('text_size', 'Appearance', 'Display', 'Text size', "Size of all texts. The window's other parts keep their size.", choice(['small', 'Small'], ['normal', 'Normal'], ['large', 'Large'], ['larger', 'Extra large']), 'normal'),
  row('code_wrap', 'Appearance', 'Display', 'Wrap lines in code', 'Breaks long lines of code blocks instead of scrolling. Each block has a button for it, too.', { kind: 'toggle' }, false),
  row('prompts', 'Chat', 'Writing', 'Own prompts', 'Texts that the message box inserts: type / and a name.', { kind: 'prompts' }, []),
  row('instructions', 'Chat', 'Answers', 'Default instructions', 'System prompt of new chats. A chat or preset with instructions of its own uses those instead.', { kind: 'long_text', placeholder: 'For example: Answer briefly.' }, ''),
  row('memory', 'Chat', 'Answers', 'Use memory', 'Adds the notes of the memory page to the prompt of every chat. Each chat and each project can override this. Nothing is noted unless you save it.', { kind: 'toggle' }, true),
  row('thinking', 'Chat', 'Thinking', 'Think before answering', 'For models that can turn thinking on and off. Some also accept /think or /no_think in a message.', choice(['model', 'Model default'], ['on', 'On'], ['off', 'Off']), 'model'),
  row('send_key', 'Chat', 'Writing', 'Send with', 'The other combination inserts a line break.', choice(['enter', 'Enter'], ['mod_enter', 'Ctrl+Enter (⌘+Enter on Mac)']), 'enter'),
  row('temperature', 'Chat', 'Answers', 'Temperature', '0 always picks the most likely token. Higher values give more varied answers.', { kind: 'number', min: 0, max: 2, step: 0.05 }, 0.7),
  row('top_k', 'Chat', 'Answers', 'Top-k', 'Samples only from the k most likely tokens. 0 turns this off.', { kind: 'integer', min: 0, max: 1000, absent: null }, 40),
  row('top_p', 'Chat', 'Answers', 'Top-p', 'Samples only from the most likely tokens whose probabilities add up to this value. 1 turns this off.', { kind: 'number', min: 0, max: 1, step: 0.01 }, 0.95),
  row('seed', 'Chat', 'Answers', 'Seed', 'The same seed and prompt give the same answer.', { kind: 'integer', min: 0, max: 4294967295, absent: 'random' }, null),
  row('max_tokens', 'Chat', 'Answers', 'Maximum answer length', 'In tokens.', { kind: 'integer', min: 1, max: 1048576, absent: 'until the context is full' }, null),
  row('tools', 'Tools', 'Tools', 'Offer tools to models', 'Offers the tools of all servers that are turned on. Each chat can override this.', { kind: 'toggle' }, true),
  row('tool_rounds', 'Tools', 'Tools', 'Tool calls before asking', 'After this many rounds of tool calls in a row, you are asked again, even for tools you always allow.', { kind: 'integer', min: 1, max: 100, absent: null }, 8),
  row('compression', 'Context & memory', 'Long chats', 'When the context is full', 'What the model sees when a chat no longer fits into the context. Your messages are never deleted.', choice(['window', 'Leave out the oldest messages'], ['summary', 'Summarize older messages'], ['off', 'Stop with an error']), 'window'),
  row('context', 'Hardware', 'Hardware', 'Context length', 'Maximum number of tokens in a chat that the model can see. Longer contexts use more memory.', { kind: 'integer', min: 64, max: 1048576, absent: 'model’s own, up to 8192' }, null),
  row('kv', 'Hardware', 'Hardware', 'KV cache precision', '8-bit answers as well as 16-bit. 4-bit makes small models noticeably worse. 8-bit keys with 4-bit values lose much less.', choice(['f16', '16-bit float'], ['f32', '32-bit float'], ['q8_0', '8-bit (half the memory)'], ['q8_0/q4_0', '8-bit keys, 4-bit values (two fifths of the memory)'], ['q4_0', '4-bit (a quarter of the memory, less exact)']), 'f16'),
  row('threads', 'Hardware', 'Hardware', 'CPU threads', 'Number of threads used for computation.', { kind: 'integer', min: 1, max: 64, absent: 'one per fast core; half on battery' }, null),
  row('proxy', 'Privacy & network', 'Network', 'Proxy', 'Address of the proxy for Hugging Face, other servers and tool servers. Empty: the system\'s. Hosts in NO_PROXY are reached directly. A password in the address is stored unencrypted.', { kind: 'text', placeholder: 'http://proxy.example:8080' }, ''),
  row('offline', 'Privacy & network', 'Network', 'Offline mode', 'Blocks connections to other servers and Hugging Face: no remote answers, model search or downloads. Running downloads pause.', { kind: 'toggle' }, false),
  row('shortcuts', 'Shortcuts', 'Shortcuts', 'Shortcuts', 'Keyboard shortcuts that differ from the defaults. An empty list turns a shortcut off.', { kind: 'keys' }, {}),
  row('limit_concurrent', 'Local server', 'Limits', 'Concurrent answers', 'More requests wait in the queue.', { kind: 'integer', min: 1, max: 64, absent: null }, 1),
  row('data_dir', 'Data', 'Data', 'Data folder', 'Set by --data-dir or INGLENOOK_DATA_DIR when the program starts.', { kind: 'read_only' }, '/home/ada/.local/share/inglenook'),
];

/** About 20,000 tokens: prose, a long program, tables, formulas. */
const HUGE = [
  (RICH + '\n\n').repeat(14),
  '```python\n' + Array.from({ length: 260 }, (_, i) => `def kiln_${i}(wood, moisture=0.2):\n    """Days that pile ${i} lasts."""\n    return wood.mass * (1 - moisture) * ${i}.5  # kWh\n`).join('\n') + '```\n\n',
  '| Pile | Wood | Mass | Moisture |\n| --- | --- | ---: | ---: |\n' + Array.from({ length: 240 }, (_, i) => `| ${i} | *birch* no. ${i} | ${i * 7} kg | ${(i % 40) + 8} % |`).join('\n') + '\n\n',
  (RICH + '\n\n').repeat(8),
  Array.from({ length: 200 }, (_, i) => `${i + 1}. Log ${i + 1} goes **on top** of the one before, and \`burns\` until nothing is left of it.`).join('\n'),
].join('');

const GANTT = `gantt
  title A winter's wood
  dateFormat YYYY-MM-DD
  section Forest
    Choose the trees      :done, choose, 2025-01-06, 10d
    Fell them             :done, crit, fell, after choose, 3w
    Carry them out        :active, carry, after fell, 12d
  section Yard
    Split                 :split, after carry, 20d
    Stack under the roof  :after split, 1w
    Everything is dry     :milestone, 2025-05-20, 0d
  section House
    Have the chimney swept :crit, 2025-04-01, 2025-04-15
    Light the first fire   :milestone, crit, after split, 1d
`;

/** What a preview shows, and all that it must not do. */
const PAGE = `<!doctype html><link rel=preconnect href=http://127.0.0.1:9/><style>p { color: rgb(1, 2, 3) }</style><p id=p style="margin: 3px">static</p><img src=http://127.0.0.1:9/leak.png><form action=http://127.0.0.1:9/><button>go</button></form><a id=a href=http://127.0.0.1:9/>away</a><p onclick="p.textContent = 'clicked'" id=c>c</p><script>p.textContent = 'ran'; try { p.title = parent.document.title } catch { p.title = 'apart' } p.lang = self.origin; fetch('http://127.0.0.1:9/fetch').catch(() => (c.textContent = 'no network')); setTimeout(() => { location = 'http://127.0.0.1:9/navigation' }, 2000)</script>`;

export const ANSWERS = [
  { when: /think/i, reasoning: 'The person wants me to think about it. '.repeat(12), text: RICH },
  { when: /fail/i, text: 'The answer begins well and then', fails: { code: 'engine.not_finite', message: 'The model computed a value that is not a number, in layer 7.', remedy: 'Try again; if it stays, check the model file with `nook inspect`.' } },
  { when: /cut short/i, text: 'It begins well, and it would go on', ends: 'length' },
  { when: /runs over/i, text: 'It begins well, and then', fails: { code: 'request.context_full', message: 'This conversation has 8,412 tokens; the model is loaded with 8,192.', remedy: 'Fold older messages, load the model with a larger context, or start a new chat.' } },
  { when: /long/i, text: (RICH + '\n\n').repeat(12) },
  { when: /huge/i, text: HUGE },
  { when: /diagram/i, text: 'Here it is:\n\n```mermaid\ngraph TD\n  A[Lay the logs] --> B{Is it lit?}\n  B -->|yes| C((Warmth))\n  B -->|no| D[Birch bark]\n  D --> B\n```\n\nIts woods:\n\n```mermaid\npie showData title Woods of the pile\n  "Oak" : 3\n  "Birch, split and dry" : 5\n  "Spruce" : 1.5\n  "Ash" : 0.3\n```\n\nWhen they are stacked:\n\n```mermaid\n' + GANTT + '```\n\nAnd one that is not drawn:\n\n```mermaid\nmindmap\n  root((Fire))\n    Wood\n    Air\n```\n' },
  { when: /attack/i, text: 'Here: <img src=x onerror=alert(1)> <script>alert(2)</script> [click](javascript:alert(3)) ![x](http://127.0.0.1:9/leak) <iframe src="http://127.0.0.1:9/"></iframe>' },
  { when: /a page/i, text: 'Here:\n\n```html\n' + PAGE + '\n```\n\n```svg\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle cx="4" cy="4" r="3" onclick="alert(1)"/></svg>\n```' },
  { when: /./, text: RICH },
];

/** Calls of the guide, with one article. */
const HELP_TOPICS = [
  {
    heading: 'Chats',
    articles: [
      {
        id: 'print-a-chat',
        title: 'Print a chat or save it as a PDF',
        text: 'Press **Ctrl+P**.',
        related: [],
        targets: [{ kind: 'command', id: 'print' }],
        errors: [],
        settings: [],
      },
    ],
  },
];

export const HELP_CALLS = {
  help_topics: () => HELP_TOPICS,
  help_search: () => ['print-a-chat'],
};
