/**
 * What in a draft a writer may not notice: characters that show nothing, and, in what was pasted, sentences
 * that are meant for a model. Asked for a moment after the last key.
 */
import type { Backend } from '../../backend/backend';
import type { Finding } from '../../backend/bindings';

const PAUSE_MS = 250;
/** A text of such letters alone hides nothing. */
const PLAIN = /^[\t\n\r\x20-\x7e]*$/;

export class ScanState {
  findings = $state.raw<readonly Finding[]>([]);

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wanted = '';

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** `pasted`: a part of it comes from elsewhere. */
  want(text: string, pasted: boolean): void {
    if (text === this.#wanted) return;
    this.#wanted = text;
    clearTimeout(this.#timer);
    if (text === '' || (!pasted && PLAIN.test(text))) {
      this.findings = [];
      return;
    }
    this.#timer = setTimeout(() => void this.#ask(text, pasted), PAUSE_MS);
  }

  async #ask(text: string, pasted: boolean): Promise<void> {
    let found: readonly Finding[] = [];
    try {
      found = await this.#backend.call('text_scan', { text });
    } catch {
      // A warning that can't be had is only missing; what is sent is guarded again.
    }
    if (text !== this.#wanted) return;
    this.findings = pasted ? found : found.filter((it) => it.type === 'hidden');
  }
}
