/** Arrow keys along the inline axis: forwards follows the direction of the page's language. */

/** Returns 1 for forwards, -1 for backwards, undefined for other keys or with a modifier. */
export function inlineArrowStep(
  event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>,
  rtl: boolean = document.documentElement.dir === 'rtl',
): 1 | -1 | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (right === undefined) return undefined;
  return right > 0 !== rtl ? 1 : -1;
}
