export { around, dotted, i18n, isolate, storedLanguage, t } from './i18n.svelte';
export { spoken, told, toldInLine } from './settings';
export type { Key, Language } from './types';
