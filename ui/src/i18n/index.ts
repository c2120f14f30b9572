export { around, dotted, i18n, isolate, storedLanguage, t } from './i18n.svelte';
export { errorCause, localizeSetting, localizeError, localizeErrorInline } from './localize';
export type { Key, Language } from './types';
