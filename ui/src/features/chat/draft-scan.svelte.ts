/**
 * Scans the draft for things its writer may not notice: invisible characters and, in pasted text,
 * sentences that try to instruct the model. Debounced.
 */
import type { Backend } from '../../backend/backend';
import type { Finding } from '../../backend/bindings';

const DEBOUNCE_MS = 250;
/** Plain ASCII hides nothing. */
const PLAIN = /^[\t\n\r\x20-\x7e]*$/;

export class DraftScanState {
  findings = $state.raw<readonly Finding[]>([]);

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #text = '';

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** `pasted`: part of the text was pasted. */
  update(text: string, pasted: boolean): void {
    if (text === this.#text) return;
    this.#text = text;
    clearTimeout(this.#timer);
    if (text === '' || (!pasted && PLAIN.test(text))) {
      this.findings = [];
      return;
    }
    this.#timer = setTimeout(() => void this.#scan(text, pasted), DEBOUNCE_MS);
  }

  async #scan(text: string, pasted: boolean): Promise<void> {
    let found: readonly Finding[] = [];
    try {
      found = await this.#backend.call('text_scan', { text });
    } catch {
      // A failed scan only loses the warning: sent text is checked again.
    }
    if (text !== this.#text) return;
    this.findings = pasted ? found : found.filter((it) => it.type === 'hidden');
  }
}
