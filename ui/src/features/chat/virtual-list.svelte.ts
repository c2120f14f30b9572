/**
 * Renders a long list only near the viewport. Rows are measured when rendered; a row above the viewport
 * whose height differs from its estimate never moves what is being read.
 */
import type { Attachment } from 'svelte/attachments';
import { RowHeights, visibleRange, type VirtualRow } from './row-heights';

/** Rows rendered outside the viewport on each side, in viewport heights. */
const OVERSCAN_VIEWS = 1;
/** Viewport height before the first measurement. */
const FIRST_VIEW_PX = 900;
/** Distance that still counts as the end: less than a line of text. */
const END_TOLERANCE_PX = 20;

export class VirtualList {
  /** Follows the growing end until the reader scrolls up. */
  following = $state(true);
  /** Renders everything, for printing. */
  renderAll = $state(false);
  /** Reaching the end does not start following it. */
  holdPosition = false;

  readonly #heights = new RowHeights();
  readonly #rows: () => readonly VirtualRow[];
  /** Incremented by measurements, so that values derived from heights are recomputed. */
  #measured = $state(0);
  #top = $state(0);
  #view = $state(FIRST_VIEW_PX);
  #kept = $state.raw<readonly string[]>([]);

  #scroller: HTMLElement | null = null;
  #lastTop = 0;
  #frame = 0;
  #observer: ResizeObserver | null = null;
  readonly #keys = new WeakMap<Element, string>();

  readonly range = $derived.by(() => {
    void this.#measured;
    const heights = this.#heights;
    heights.setRows(this.#rows());
    if (this.renderAll) return { first: 0, end: this.#rows().length, before: 0, after: 0 };
    const most = Math.max(0, heights.total - this.#view);
    const top = this.following ? most : Math.min(this.#top, most);
    const beyond = this.#view * OVERSCAN_VIEWS;
    const keep = this.#kept.map((key) => heights.indexOf(key));
    const range = visibleRange(heights, top - beyond, top + this.#view + beyond, keep);
    const before = heights.offset(range.first);
    return { ...range, before, after: heights.total - heights.offset(range.end) };
  });

  constructor(rows: () => readonly VirtualRow[]) {
    this.#rows = rows;
  }

  readonly scroller: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    const onscroll = () => this.#onScroll(scroller);
    const resized = new ResizeObserver(() => {
      this.#view = scroller.clientHeight;
      if (this.following) this.#jump();
    });
    resized.observe(scroller);
    scroller.addEventListener('scroll', onscroll, { passive: true });
    const onfocus = () => this.#keepFocusedRows();
    scroller.addEventListener('focusin', onfocus);
    document.addEventListener('selectionchange', onfocus);
    return () => {
      resized.disconnect();
      this.#observer?.disconnect();
      this.#observer = null;
      cancelAnimationFrame(this.#frame);
      scroller.removeEventListener('scroll', onscroll);
      scroller.removeEventListener('focusin', onfocus);
      document.removeEventListener('selectionchange', onfocus);
    };
  };

  row(key: string): Attachment<HTMLElement> {
    return (element) => {
      this.#observer ??= new ResizeObserver((entries) => this.#measure(entries));
      this.#keys.set(element, key);
      this.#observer.observe(element);
      return () => this.#observer?.unobserve(element);
    };
  }

  toEnd(): void {
    this.following = true;
    this.#jump();
  }

  /** Scrolls a row to the middle of the viewport. Resolves when it is rendered. */
  async reveal(key: string): Promise<void> {
    const index = this.#heights.indexOf(key);
    if (index < 0 || !this.#scroller) return;
    this.following = false;
    this.#top = Math.max(0, this.#heights.offset(index) - this.#view / 2);
    this.#scroller.scrollTop = this.#top;
    this.#lastTop = this.#scroller.scrollTop;
    await new Promise((drawn) => requestAnimationFrame(drawn));
  }

  #jump(): void {
    if (!this.#scroller) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#lastTop = this.#scroller.scrollTop;
    this.#top = this.#lastTop;
  }

  #onScroll(scroller: HTMLElement): void {
    const top = scroller.scrollTop;
    const left = scroller.scrollHeight - scroller.clientHeight - top;
    // Only scrolling up stops following: growth also widens the distance to the end.
    if (left <= END_TOLERANCE_PX) this.following ||= !this.holdPosition;
    else if (top < this.#lastTop) this.following = false;
    this.#lastTop = top;
    this.#top = top;
  }

  #measure(entries: readonly ResizeObserverEntry[]): void {
    const anchor = this.#heights.at(this.#lastTop);
    let shift = 0;
    let changed = false;
    for (const { target, borderBoxSize } of entries) {
      const key = this.#keys.get(target);
      const px = borderBoxSize[0]?.blockSize;
      if (key === undefined || px === undefined || !target.isConnected) continue;
      const above = this.#heights.indexOf(key) < anchor;
      const grown = this.#heights.measure(key, px);
      changed ||= grown !== 0;
      if (above) shift += grown;
    }
    if (!changed) return;
    if (this.following) this.#jump();
    else if (shift !== 0 && this.#scroller) {
      this.#scroller.scrollTop += shift;
      this.#lastTop = this.#scroller.scrollTop;
    }
    // The range is recomputed in the next frame: rendering rows in this one would measure again.
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#measured++;
    });
  }

  /** Keeps the focused row and the ends of the selection rendered. */
  #keepFocusedRows(): void {
    const selection = getSelection();
    const nodes = [document.activeElement];
    if (selection && !selection.isCollapsed) {
      nodes.push(elementOf(selection.anchorNode), elementOf(selection.focusNode));
    }
    const keys = nodes.flatMap((node) => {
      const key = node?.closest<HTMLElement>('[data-row]')?.dataset.row;
      return key === undefined ? [] : [key];
    });
    const same = keys.length === this.#kept.length && keys.every((it, at) => it === this.#kept[at]);
    if (!same) this.#kept = keys;
  }
}

const elementOf = (node: Node | null): Element | null =>
  node instanceof Element ? node : (node?.parentElement ?? null);
