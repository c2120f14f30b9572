/** What is fetched with the first text that needs it: colours for code, formulas. */
import { setTypeset } from './math';
import { setHighlight, type Highlight } from './render';

class Late {
  /** Null until it is there. */
  highlight = $state.raw<Highlight | null>(null);
  /** Formulas can be set. */
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

export const late = new Late();
