/** Loads the highlighter when the first code block wants it. */
import { setHighlighter } from './render';

class Highlighting {
  ready = $state(false);
  #wanted = false;

  want(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    void import('./highlight').then(({ highlight }) => {
      setHighlighter(highlight);
      this.ready = true;
    });
  }
}

export const highlighting = new Highlighting();
