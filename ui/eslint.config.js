import { readdirSync } from 'node:fs';
import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

/** A feature imports no other feature: `app/` and `views/` connect them with props, snippets and callbacks. */
const features = readdirSync(new URL('src/features/', import.meta.url));
const featureBoundaries = features.map((feature) => ({
  files: [`src/features/${feature}/**`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(\\.\\./)+(features/)?(${features.filter((it) => it !== feature).join('|')})(/|$)`,
            message: 'A feature imports no other feature; connect them in app/ or views/.',
          },
          {
            regex: '/(app/(?!context$)|views/)',
            message: 'Of app/, a feature knows the context alone; it knows no view.',
          },
        ],
      },
    ],
  },
}));
/** Folders that the features stand on. None of them may know a feature or the composition root. */
const foundationBoundaries = ['backend', 'i18n', 'markdown', 'shared'].map((folder) => ({
  files: [`src/${folder}/**`],
  rules: {
    'no-restricted-imports': [
      'error',
      { patterns: [{ regex: '/(app|features|views)/', message: 'Dependencies point downwards.' }] },
    ],
  },
}));

export default ts.config(
  {
    ignores: ['dist/', 'node_modules/', 'src/backend/bindings.ts', 'src/backend/bindings/'],
  },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser } },
    rules: {
      'no-console': 'error',
      eqeqeq: 'error',
      'max-lines': ['error', { max: 250, skipBlankLines: true }],
      // One component makes HTML, after sanitising it. It disables this rule by name.
      'svelte/no-at-html-tags': 'error',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
  {
    files: ['**/*.svelte'],
    rules: { 'max-lines': ['error', { max: 200, skipBlankLines: true }] },
  },
  {
    files: ['dev/**', '**/*.test.ts', 'src/test/**', '*.config.*'],
    languageOptions: { globals: { ...globals.node } },
    rules: { 'no-console': 'off' },
  },
  ...featureBoundaries,
  ...foundationBoundaries,
);
