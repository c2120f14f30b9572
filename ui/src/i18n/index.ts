export { around, dotted, i18n, isolate, storedLanguage, t } from './i18n.svelte';
export { spoken, told, toldInLine } from './localize';
export type { Key, Language } from './types';
