/** The token inspector: the tokens of an answer and their alternatives. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { ErrorInfo, TokenAlternatives } from '../../backend/bindings';

export class TokenInspectorState {
  /** Id of the inspected answer; null: closed. */
  message = $state<string | null>(null);
  /** Null: loading, or failed. */
  tokens = $state.raw<readonly TokenAlternatives[] | null>(null);
  error = $state.raw<ErrorInfo | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async open(message: string): Promise<void> {
    this.message = message;
    this.tokens = null;
    this.error = null;
    try {
      const tokens = await this.#backend.call('message_tokens', { message });
      if (this.message === message) this.tokens = tokens;
    } catch (thrown) {
      if (this.message === message) this.error = asErrorInfo(thrown);
    }
  }

  close(): void {
    this.message = null;
    this.tokens = null;
  }
}
