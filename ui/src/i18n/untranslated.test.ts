import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse, type AST } from 'svelte/compiler';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '..');
/** Files with English that is not interface text: catalogues, wire names, lines of other programs. */
const NOT_OURS = ['i18n/', 'backend/', 'test/', 'features/server/server-examples.ts', 'main.ts'];

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => /(?<!\.test)\.(ts|svelte)$/.test(path))
  .filter((path) => !NOT_OURS.some((it) => path.startsWith(it)))
  .map((path) => [path, readFileSync(join(SRC, path), 'utf8')] as const);

/** Attributes that people read. */
const SPOKEN =
  /^(?:aria-(?:label|valuetext|description)|title|placeholder|alt|label|text|note|name|close)$/;
/** Names of keys and programs: the same in every language. */
const NAMES = new Set([
  ...[
    'Escape',
    'Enter',
    'Home',
    'End',
    'Tab',
    'Backspace',
    'Delete',
    'Space',
    'Plus',
    'Shift',
    'Alt',
  ],
  ...['Control', 'Meta', 'Mod', 'Semicolon', 'Quote', 'Comma', 'Period', 'Slash', 'Minus', 'Equal'],
  ...[
    'Files',
    'Inglenook',
    'Esc',
    'Ctrl',
    'OpenAI',
    'Ollama',
    'Inglenook … (…)',
    'nook serve',
    'nook keys',
  ],
  ...['INPUT', 'TEXTAREA', 'SELECT'],
]);
const NAME =
  /^(?:Arrow|Page)(?:Up|Down|Left|Right)$|^(?:F\d+|Mod\+.*|Shift\+.*|AltGraph|ContextMenu)$/;
/** The application's names of sections and groups, which `sectionName` translates. */
const WIRE = new Set([
  ...['General', 'Appearance', 'Chat', 'Models & storage', 'Hardware', 'Context & memory'],
  ...[
    'Local server',
    'Providers',
    'Privacy & network',
    'Shortcuts',
    'Data',
    'About',
    'Models',
    'Tools',
    'Context cache',
    'Long chats',
  ],
]);

/** Text that a person would read: a capitalised word, or two adjacent words. */
function isEnglish(text: string): boolean {
  const words = text.replace(/&\w+;/g, ' ').trim();
  if (NAMES.has(words) || WIRE.has(words) || NAME.test(words)) return false;
  return (
    /^[A-Z“][a-z]+(?:$|[\s.,:;…’'”!?])/.test(words) ||
    /[a-z]{2,},? [a-z’]{2,} ?[a-z.…]*/.test(words)
  );
}

/** English in strings of a script. */
function inScript(code: string): string[] {
  const found: string[] = [];
  const file = ts.createSourceFile('x.ts', code, ts.ScriptTarget.Latest, true);
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    // Messages for programmers.
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) return;
    const texts =
      ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)
        ? [node.text]
        : ts.isTemplateExpression(node)
          ? [[node.head.text, ...node.templateSpans.map((it) => it.literal.text)].join('…')]
          : [];
    found.push(...texts.filter((text) => isEnglish(text) && !isCode(text)));
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

/** Selectors, style sheets, patterns. */
const isCode = (text: string): boolean => /[=[{<>]|var\(|\bpx\b|^\.|: reduce|^input, /.test(text);

/** English in the markup of a component, and in what its markup computes. */
function inComponent(source: string): string[] {
  const { instance, module, fragment } = parse(source, { modern: true });
  const found: string[] = [];
  const codeOf = (it: { start: number; end: number }) => source.slice(it.start, it.end);
  for (const script of [instance, module]) {
    if (script) found.push(...inScript(codeOf(script.content as unknown as AST.BaseNode)));
  }
  const visit = (node: unknown, attribute: string | null): void => {
    if (Array.isArray(node)) return node.forEach((it) => visit(it, attribute));
    if (typeof node !== 'object' || node === null) return;
    const it = node as AST.BaseNode & { name?: string; data?: string; expression?: AST.BaseNode };
    if (it.type === 'Text') {
      const spoken =
        attribute === null ? /[A-Za-z]{2}/.test(it.data ?? '') : SPOKEN.test(attribute);
      const words = (it.data ?? '').trim();
      if (
        spoken &&
        (attribute === null ? !NAMES.has(words) && !/^&\w+;$/.test(words) : isEnglish(words))
      )
        found.push(words);
      return;
    }
    if (it.type === 'Comment') return;
    if (it.type === 'ExpressionTag' && it.expression) {
      found.push(...inScript(`(${codeOf(it.expression)})`));
      return;
    }
    const name = it.type === 'Attribute' ? (it.name ?? null) : attribute;
    for (const [key, value] of Object.entries(it)) if (key !== 'parent') visit(value, name);
  };
  visit(fragment.nodes, null);
  return found;
}

describe('no words are left in the page’s code', () => {
  it.each(files)('%s', (path, source) => {
    expect(path.endsWith('.svelte') ? inComponent(source) : inScript(source)).toEqual([]);
  });

  it.each([
    ['<p>Hello there</p>', ['Hello there']],
    ['<p>Hi</p>', ['Hi']],
    ['<p>{t("common.close")}</p>', []],
    ['<p>{open ? "Hide it" : x}</p>', ['Hide it']],
    ['<p title="Closes it"></p>', ['Closes it']],
    ['<p class="button quiet"></p>', []],
    ['<Step title="The title" />', ['The title']],
    [
      '<script lang="ts">const words = $derived(x ? "Stop it" : `${n} models here`);</script>',
      ['Stop it', '… models here'],
    ],
    ['<script lang="ts">if (event.key === "ArrowDown") go();</script>', []],
  ])('%s would be found', (source, found) => {
    expect(inComponent(source)).toEqual(found);
  });
});
