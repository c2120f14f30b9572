/** Arrow keys along a line of text: forwards is where the page's language goes. */

/** 1: on; -1: back; undefined: another key, or one with a modifier. */
export function alongLine(
  event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>,
  rtl: boolean = document.documentElement.dir === 'rtl',
): 1 | -1 | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (right === undefined) return undefined;
  return right > 0 !== rtl ? 1 : -1;
}
