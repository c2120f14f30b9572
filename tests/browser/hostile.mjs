// Hostile texts for an opened chat: known vectors, and their disguises, in every place where a text of a model, a tool or
// an import is shown. By itself it prints the import file, for tests/desktop.

import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const KNOWN = JSON.parse(readFileSync(join(ROOT, 'ui/src/test/payloads.json'), 'utf8'));
/** What a script of a payload calls; a host that a request would go to. */
const RUN = 'alert(1)';
const AWAY = 'https://evil.example';

const ADDRESSES = [
  `javascript:${RUN}`, `JaVaScRiPt:${RUN}`, `\u0001javascript:${RUN}`, `java\tscript:${RUN}`, `javascript&colon;${RUN}`,
  `&#x6A;avascript:${RUN}`, `javascript://%0a${RUN}`, `view-source:javascript:${RUN}`, `feed:javascript:${RUN}`,
  'vbscript:msgbox(1)', `data:text/html,<script>${RUN}</script>`, `data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+`,
  'file:///etc/passwd', 'file://evil.example/share', 'smb://evil.example/share', '\\\\evil.example\\share',
  'ms-word:ofe|u|https://evil.example/x', 'search-ms:query=x&crumb=location:\\\\evil.example', 'ssh://-oProxyCommand=calc/x',
  'inglenook://new?text=x', 'tauri://localhost/', 'ipc://localhost/call', 'blob:https://evil.example/x', 'about:blank',
  `//evil.example/x`, '/api/send', '?a=b', '#app', `https://good.example@evil.example/`, `https://evil.example%2f@good.example/`,
];

const HANDLERS = ['onerror', 'onload', 'onfocus', 'onmouseover', 'onanimationstart', 'ontoggle', 'onpointerenter', 'onbegin'];
const ELEMENTS = ['img src=x', 'svg', 'video src=x', 'details open', 'input autofocus', 'body', 'iframe', 'math', 'marquee', 'select', 'object', 'a href=x'];

const MUTATIONS = [
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${RUN}&gt;">`,
  `<svg></p><style><a id="</style><img src=1 onerror=${RUN}>">`,
  `<form><math><mtext></form><form><mglyph><style></math><img src onerror=${RUN}>`,
  `<math><mi><table><mi><img src=x onerror=${RUN}></mi></table></mi></math>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<svg><desc><![CDATA[</desc><script>${RUN}</script>]]></svg>`,
  `<p id="</p><img src=x onerror=${RUN}>">`, `<!-- --!><img src=x onerror=${RUN}> -->`, `<![CDATA[><img src=x onerror=${RUN}>]]>`,
  `<title><a title="</title><img src=x onerror=${RUN}>">`, `<xmp><p title="</xmp><svg/onload=${RUN}>">`,
  `<sub><svg><style><img src=x onerror=${RUN}></style></svg></sub>`, `<kbd/onclick=${RUN}>x</kbd>`, `<br/onload=${RUN}>`,
  `<sub style=animation-name:x onanimationstart=${RUN}>x</sub>`, `<sup id=app name=body class=toast>x</sup>`,
];
const CLOBBERS = ['app', 'body', 'head', 'location', 'documentElement', 'currentScript', '__TAURI_INTERNALS__', 'attributes', 'parentNode']
  .flatMap((name) => [`<a id=${name}><a id=${name} name=x href=${AWAY}>`, `<form name=${name}><input name=parentNode></form>`]);
const STYLES = [
  `<style>@import url(${AWAY}/x.css);</style>`, `<link rel=stylesheet href=${AWAY}/x.css>`, `<p style="background:url(${AWAY}/x)">x</p>`,
  `<style>*{background:url("${AWAY}/a")}</style>`, `<p style="position:fixed;inset:0;z-index:9">x</p>`, `<font color="url(${AWAY})">x</font>`,
];
const FORMULAS = [
  `\\href{javascript:${RUN}}{x}`, `\\url{${AWAY}/x}`, `\\includegraphics{${AWAY}/x.png}`, `\\htmlData{url=javascript:${RUN}}{x}`,
  '\\htmlId{app}{x}', '\\htmlClass{toast}{x}', `\\htmlStyle{background:url(${AWAY})}{x}`, `\\text{<img src=x onerror=${RUN}>}`,
  '\\def\\x{\\x\\x}\\x', '\\rule{9999em}{9999em}', `\\color{red;background:url(${AWAY})}{x}`, `\\unicode{x}`, '\\kern{-9999em}x',
  `\\begin{array}{<script>${RUN}</script>}\\end{array}`, '\\edef\\a{\\write18{calc}}', '\\input{/etc/passwd}',
].flatMap((tex) => [`$${tex}$`, `$$\n${tex}\n$$`, `\\(${tex}\\)`, `\\[\n${tex}\n\\]`]);
const DRAWINGS = [
  `graph TD\nA-->B\nclick A "javascript:${RUN}"`, `graph TD\nA-->B\nclick A href "${AWAY}/x" _blank`, `graph TD\nA-->B\nclick A call alert(1)`,
  `graph TD\nA["<img src=x onerror=${RUN}>"]-->B`, `graph TD\nA["<a href='javascript:${RUN}'>x</a>"]-->B["<foreignObject>"]`,
  `%%{init: {"securityLevel":"loose","themeCSS":"*{background:url(${AWAY}/x)}"}}%%\ngraph TD\nA-->B`,
  `graph TD\nA-->B\nstyle A fill:url(${AWAY}/x),stroke:red`, `graph TD\nA-->B\nclassDef x fill:#f9f,background:url(${AWAY}/y)\nclass A x`,
  `sequenceDiagram\nA->>B: <script>${RUN}</script>\nlink A: x @ javascript:${RUN}`, `pie title <svg onload=${RUN}>\n"<img src=x onerror=${RUN}>" : 1`,
  `gantt\ntitle <img src=x onerror=${RUN}>\nsection "><script>${RUN}</script>\na :2020-01-01, 2d\nclick a href "javascript:${RUN}"`,
  `classDiagram\nclass A["</text><script>${RUN}</script>"]\nlink A "${AWAY}" "x"`, `---\ntitle: "</style><script>${RUN}</script>"\n---\ngraph TD\nA-->B`,
];
/** Turned around, hidden or split by characters that are not seen. */
const DISGUISES = [
  (it) => `\u202e${it}\u202c`, (it) => `\u2066${it}\u2069`, (it) => it.replace('<', '<\u0000'), (it) => it.replace('script', 'scr\u200bipt'),
  (it) => it.replace(/</g, '&lt;'), (it) => it.replace(/</g, '\uff1c').replace(/>/g, '\uff1e'), (it) => it.replace(/</g, '\\<'),
];

const VECTORS = [
  ...KNOWN, ...MUTATIONS, ...CLOBBERS, ...STYLES,
  ...ELEMENTS.flatMap((element) => HANDLERS.map((handler) => `<${element} ${handler}=${RUN}>`)),
  ...MUTATIONS.flatMap((it) => DISGUISES.map((disguise) => disguise(it))),
];
const line = (it) => it.replace(/\n/g, ' ');
/** Places within Markdown. */
const CONTEXTS = [
  (it) => it, (it) => `text ${line(it)} text`, (it) => `- ${line(it)}`, (it) => `> ${line(it)}`, (it) => `| a |\n|---|\n| ${line(it)} |`,
  (it) => `**${line(it)}**`, (it) => `\`${line(it)}\``, (it) => `\`\`\`html\n${it}\n\`\`\``, (it) => `\`\`\`${line(it)}\nx\n\`\`\``,
  (it) => `[${line(it)}](${AWAY}/x)`, (it) => `![${line(it)}](${AWAY}/x.png "${line(it)}")`, (it) => `# ${line(it)}`, (it) => `$\\text{${line(it)}}$`,
];
const LINKS = [
  (it) => `[x](${it})`, (it) => `[x](<${it}>)`, (it) => `![x](${it})`, (it) => `<${it}>`, (it) => `[x][r]\n\n[r]: ${it}`,
  (it) => `[x](${AWAY}/ "${it}")`, (it) => `<a href="${it}">x</a>`, (it) => it,
];

/** Every text, each with something around it. */
export const HOSTILE_TEXTS = [
  // each in one place after the other, the first ones in all of them
  ...VECTORS.flatMap((it, n) => (n < 40 ? CONTEXTS : [CONTEXTS[n % CONTEXTS.length]]).map((around) => around(it))),
  ...ADDRESSES.flatMap((address) => LINKS.map((around) => around(address))),
  ...FORMULAS,
  ...DRAWINGS.map((it) => `\`\`\`mermaid\n${it}\n\`\`\``),
];
const PER_ANSWER = 40;

/** A conversation whose every text is hostile, and others with hostile titles, as a file to import. */
export function hostileImport() {
  const answers = [];
  for (let n = 0; n < HOSTILE_TEXTS.length; n += PER_ANSWER) answers.push(HOSTILE_TEXTS.slice(n, n + PER_ANSWER));
  const messages = answers.flatMap((texts, n) => {
    const parent = n > 0 ? `a${n - 1}` : null;
    const vector = (at) => VECTORS[(n * 7 + at) % VECTORS.length];
    const run = { server: 's', server_name: vector(1), tool: vector(2), state: 'done', result: vector(3), cut: 0, duration_ms: 5, findings: [], at_limit: false };
    const call = { id: 'c', name: vector(2), arguments: JSON.stringify({ [vector(4)]: vector(5) }), run };
    const file = { id: `f${n}`, document: 'd', name: `${vector(6).replace(/[/\\]/g, '')}.txt`, kind: 'text', bytes: 4 };
    const common = { state: 'complete', created_ms: n };
    return [
      { ...common, id: `q${n}`, parent, role: 'user', text: vector(0), files: [file] },
      { ...common, id: `a${n}`, parent: `q${n}`, role: 'assistant', text: texts.join('\n\n'), reasoning: texts.slice(0, 5).join('\n'), tool_calls: [call] },
    ];
  });
  const main = { id: 'hostile', title: `Hostile ${VECTORS[3]}`, model: 'starter', messages, leaf: messages.at(-1).id, documents: { d: VECTORS.join('\n') } };
  const others = VECTORS.slice(0, 60).map((title, n) => ({
    id: `title${n}`, title, model: line(title), leaf: 'q', messages: [{ id: 'q', parent: null, role: 'user', text: title, state: 'complete', created_ms: n }],
  }));
  return { format: 'inglenook.conversations', version: 1, conversations: [...others, main] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(hostileImport()));
