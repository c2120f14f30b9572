/** Estimates a message's height from its text, for the scroll bar until it is measured. */

const LINE_PX = 26;
const LINE_CHARS = 88;
/** Buttons, margins and the bubble's padding. */
const AROUND_PX = 68;
/** A message of the user with more lines is folded: it would push the answer off the screen. */
const LONG_LINES = 16;

export const isLongMessage = (text: string): boolean => countLines(text) > LONG_LINES;

export const estimateHeightPx = (text: string): number =>
  Math.round(countLines(text) * LINE_PX + AROUND_PX);

/** Lines on the screen; an empty one counts half. */
function countLines(text: string): number {
  let lines = 0;
  let from = 0;
  while (from <= text.length) {
    const found = text.indexOf('\n', from);
    const end = found < 0 ? text.length : found;
    lines += Math.max(0.5, Math.ceil((end - from) / LINE_CHARS));
    from = end + 1;
  }
  return lines;
}
