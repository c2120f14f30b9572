export { around, dotted, i18n, isolate, storedLanguage, t } from './i18n.svelte';
export { localizeSetting, localizeError, localizeErrorInline } from './localize';
export type { Key, Language } from './types';
