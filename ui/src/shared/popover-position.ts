/** Positions a popover beside its anchor and inside the window, on the other side if that has more space. */

export type Side = 'top' | 'bottom';

const GAP_PX = 6;
const MARGIN_PX = 8;

export function popoverPosition(
  popover: HTMLElement,
  anchor: HTMLElement,
  side: Side,
  align: 'start' | 'end',
): void {
  const at = anchor.getBoundingClientRect();
  const above = at.top - GAP_PX - MARGIN_PX;
  const below = innerHeight - at.bottom - GAP_PX - MARGIN_PX;
  const need = popover.offsetHeight;
  const wanted = side === 'top' ? above : below;
  const up = wanted >= need ? side === 'top' : above > below;
  const rtl = getComputedStyle(anchor).direction === 'rtl';
  const fromRight = (align === 'end') !== rtl;
  const left = fromRight ? at.right - popover.offsetWidth : at.left;
  const most = innerWidth - popover.offsetWidth - MARGIN_PX;
  const { style } = popover;
  style.left = `${Math.max(MARGIN_PX, Math.min(left, most))}px`;
  const room = `${Math.max(up ? above : below, 120)}px`;
  style.maxHeight = room;
  // Maximum height for content that scrolls.
  style.setProperty('--room', room);
  if (up) style.bottom = `${innerHeight - at.top + GAP_PX}px`;
  else style.top = `${at.bottom + GAP_PX}px`;
}
