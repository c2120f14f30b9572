/**
 * Token count of the draft, by the application. Debounced, one request at a time;
 * responses to older requests are dropped.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type {
  Attachment,
  ConversationOptions,
  DraftCount,
  ErrorInfo,
} from '../../backend/bindings';

const DEBOUNCE_MS = 150;

export interface Draft {
  readonly conversation: string | null;
  readonly text: string;
  readonly model: string | null;
  /** Attachments of the draft. */
  readonly attachments?: string[];
  /** Options of a chat without messages. */
  readonly options?: ConversationOptions | null;
  /** The folder that it will lie in. */
  readonly folder?: string | null;
}

export class DraftCountState {
  /** Null: unknown, or not worth showing. */
  count = $state.raw<DraftCount | null>(null);
  /** Why its attachments cannot be sent. */
  problem = $state.raw<ErrorInfo | null>(null);

  readonly #backend: Backend;
  #draft: Draft | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isCounting = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  update(draft: Draft): void {
    this.#draft = draft;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#count(), DEBOUNCE_MS);
  }

  /** Clears the count without a request. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#draft = null;
    [this.count, this.problem] = [null, null];
  }

  /** Returns the attachment with its token cost, if known. */
  withCost(file: Attachment): Attachment {
    const { count } = this;
    // A file with scanned pages has a cost for its text and for each of them.
    const costs = count?.attachments.filter((it) => it.id === file.id) ?? [];
    if (!count || costs.length === 0) return file;
    const is_about = count.is_about ?? false;
    const tokens = costs.reduce((sum, it) => sum + it.tokens_whole, 0);
    return { ...file, whole: costs.every((it) => it.whole), tokens, is_about };
  }

  /** Whether the model is not shown the scanned pages of an attachment, as far as that is known. */
  hidesPages(file: Attachment): boolean {
    const costs = this.count?.attachments.filter((it) => it.id === file.id) ?? [];
    return costs.slice(1).some((it) => it.tokens === 0);
  }

  async #count(): Promise<void> {
    if (this.#isCounting || this.#draft === null) return;
    this.#isCounting = true;
    const draft = this.#draft;
    try {
      const count = await this.#backend.call('draft_count', draft);
      if (this.#draft === draft) [this.count, this.problem] = [count, null];
    } catch (thrown) {
      // Sending reports errors itself, so a failed count is only missing. Problems with attachments are shown at once.
      const error = asErrorInfo(thrown);
      const isProblem = error.code.startsWith('attachment.') || error.code === 'model.no_images';
      const problem = isProblem ? error : null;
      if (this.#draft === draft) [this.count, this.problem] = [null, problem];
    } finally {
      this.#isCounting = false;
    }
    if (this.#draft !== draft) await this.#count();
  }
}
