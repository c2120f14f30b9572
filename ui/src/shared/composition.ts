/**
 * Input methods for Chinese, Japanese, Korean and others. The keys of a composition belong to the input method: the
 * Enter that ends one confirms a word, and nothing else.
 */

/** Key code of a key that an input method handles. WebKit sends it after the composition has ended. */
const INPUT_METHOD_KEY_CODE = 229;

/** Whether a key press belongs to an input method. Every key handler asks this first. */
export const isComposing = ({
  isComposing: isWithin,
  keyCode,
}: Pick<KeyboardEvent, 'isComposing' | 'keyCode'>): boolean =>
  isWithin || keyCode === INPUT_METHOD_KEY_CODE;

/** Keeps the keys of a composition from submitting a form or closing a dialog. */
export function guardComposition(event: KeyboardEvent): void {
  if (!isComposing(event)) return;
  const submits = event.key === 'Enter' && event.target instanceof HTMLInputElement;
  if (submits || event.key === 'Escape') event.preventDefault();
}
