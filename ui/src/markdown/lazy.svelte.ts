/** Modules loaded on first use: code highlighting and formulas. */
import { setTypeset } from './math';
import { setHighlight, type Highlight } from './render';

class LazyModules {
  /** Null until it is loaded. */
  highlight = $state.raw<Highlight | null>(null);
  /** The typesetter is loaded. */
  math = $state(false);

  #coloursWanted = false;
  #mathWanted = false;

  wantColours(): void {
    if (this.#coloursWanted) return;
    this.#coloursWanted = true;
    void import('./highlight').then(({ highlight }) => {
      setHighlight(highlight);
      this.highlight = highlight;
    });
  }

  wantMath(): void {
    if (this.#mathWanted) return;
    this.#mathWanted = true;
    void import('./tex').then(({ typeset }) => {
      setTypeset(typeset);
      this.math = true;
    });
  }
}

export const lazy = new LazyModules();
