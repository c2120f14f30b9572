/** Keeps a scroller at its end while its content grows, until the reader scrolls up. */

/** This near counts as the end: less than a line of text. */
const NEAR_PX = 20;

export class Follow {
  following = $state(true);

  #scroller: Element | null = null;
  #lastTop = 0;

  attachScroller(scroller: Element): () => void {
    this.#scroller = scroller;
    const onscroll = () => this.#scrolled(scroller);
    scroller.addEventListener('scroll', onscroll, { passive: true });
    return () => scroller.removeEventListener('scroll', onscroll);
  }

  attachContent(content: Element): () => void {
    const observer = new ResizeObserver(() => {
      if (this.following) this.#jump();
    });
    observer.observe(content);
    if (this.#scroller) observer.observe(this.#scroller);
    return () => observer.disconnect();
  }

  toEnd(): void {
    this.following = true;
    this.#jump();
  }

  #jump(): void {
    if (!this.#scroller) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#lastTop = this.#scroller.scrollTop;
  }

  #scrolled(scroller: Element): void {
    const top = scroller.scrollTop;
    const left = scroller.scrollHeight - scroller.clientHeight - top;
    // Only an upward move lets go: growth alone also widens the distance to the end.
    if (left <= NEAR_PX) this.following = true;
    else if (top < this.#lastTop) this.following = false;
    this.#lastTop = top;
  }
}
