/** Estimates a message's height from its text, for the scroll bar until it is measured. */

const LINE_PX = 26;
const LINE_CHARS = 88;
/** Buttons, margins and the bubble's padding. */
const AROUND_PX = 84;

export function estimateHeightPx(text: string): number {
  let lines = 0;
  let from = 0;
  while (from <= text.length) {
    const found = text.indexOf('\n', from);
    const end = found < 0 ? text.length : found;
    lines += Math.max(0.5, Math.ceil((end - from) / LINE_CHARS));
    from = end + 1;
  }
  return Math.round(lines * LINE_PX + AROUND_PX);
}
