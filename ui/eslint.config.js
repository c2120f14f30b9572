import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

export default ts.config(
  {
    ignores: ['dist/', 'node_modules/', 'src/lib/backend/bindings.ts', 'src/lib/backend/bindings/'],
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
      // The one place that makes HTML sanitises it; it is exempted there by name.
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
    files: ['dev/**', 'tests/**', '*.config.*'],
    languageOptions: { globals: { ...globals.node } },
    rules: { 'no-console': 'off' },
  },
  {
    // Stores know nothing of each other; the composition root joins them.
    files: ['src/lib/state/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: ['./*.svelte', './*.svelte.ts', '**/state/*.svelte*', '**/app/*'] },
      ],
    },
  },
);
