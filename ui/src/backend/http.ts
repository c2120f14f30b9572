/** Transport in a browser: fetch, with the bearer key from the URL fragment. */
import {
  BackendError,
  asErrorInfo,
  isErrorInfo,
  type ArgsOf,
  type Backend,
  type CallName,
  type ResultOf,
} from './backend';
import type { AppEvent, ErrorInfo, TurnEvent } from './bindings';
import { readEvents } from './sse';
import { wellFormed } from './well-formed';

const KEY_NAME = 'inglenook.key';

/** Reads the key from `#key=…` and removes it from the address bar, or returns this tab's stored key. */
export function takeKey(): string | null {
  const match = /^#key=([^&]+)/.exec(location.hash);
  if (match?.[1]) {
    const key = decodeURIComponent(match[1]);
    keepKey(key);
    history.replaceState(null, '', location.pathname + location.search);
    return key;
  }
  return sessionStorage.getItem(KEY_NAME);
}

/** Stores the key for this tab. */
export function keepKey(key: string): void {
  sessionStorage.setItem(KEY_NAME, key);
}

/** Error code for a missing or wrong key. */
export const UNAUTHORIZED = 'ui.unauthorized';

const UNREACHABLE: ErrorInfo = {
  code: 'ui.unreachable',
  message: 'Inglenook is not responding.',
  remedy: 'Check that `nook serve` is still running, then try again.',
};

const KEY_REQUIRED: ErrorInfo = {
  code: UNAUTHORIZED,
  message: 'This page needs the API key.',
  remedy:
    'It was passed to `nook serve` with --api-key. Otherwise it is in keys/server.key in the data folder.',
};

async function refusal(response: Response): Promise<BackendError> {
  if (response.status === 401 || response.status === 403) return new BackendError(KEY_REQUIRED);
  const body: unknown = await response.json().catch(() => null);
  const error = (body as { error?: unknown } | null)?.error;
  if (isErrorInfo(error)) return new BackendError(error);
  return new BackendError({
    code: 'ui.http',
    message: `Inglenook answered with status ${response.status}.`,
    remedy: 'Try again. If it keeps happening, check the log of `nook serve`.',
  });
}

export class HttpBackend implements Backend {
  readonly kind = 'browser';
  readonly #key: string | null;
  readonly #origin: string;

  constructor(key: string | null, origin = '') {
    this.#key = key;
    this.#origin = origin;
  }

  previewFrame(scripts: boolean): string {
    return `${this.#origin}/preview/${scripts ? 'scripts' : 'static'}`;
  }

  async call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>> {
    const response = await this.#fetch(`/api/${name}`, {
      method: 'POST',
      body: JSON.stringify(wellFormed(args)),
      headers: { 'content-type': 'application/json' },
    });
    const text = await response.text();
    return (text === '' ? null : JSON.parse(text)) as ResultOf<N>;
  }

  async watchTurn(
    turn: string,
    afterSeq: number,
    onEvents: (events: TurnEvent[]) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const path = `/api/turns/${encodeURIComponent(turn)}/events?after=${afterSeq}`;
    await this.#stream(path, onEvents, () => undefined, signal);
  }

  watchApp(
    onEvents: (events: AppEvent[]) => void,
    onOpen: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#stream('/api/events', onEvents, onOpen, signal);
  }

  openLink(url: string): Promise<void> {
    window.open(url, '_blank', 'noopener,noreferrer');
    return Promise.resolve();
  }

  async #stream<E>(
    path: string,
    onEvents: (events: E[]) => void,
    onOpen: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const response = await this.#fetch(path, {
        signal,
        headers: { accept: 'text/event-stream' },
      });
      onOpen();
      if (response.body) await readEvents(response.body, onEvents);
    } catch (thrown) {
      if (signal.aborted) return;
      throw thrown instanceof BackendError ? thrown : new BackendError(asErrorInfo(thrown));
    }
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#key) headers.set('authorization', `Bearer ${this.#key}`);
    let response: Response;
    try {
      response = await fetch(this.#origin + path, { ...init, headers, cache: 'no-store' });
    } catch {
      throw new BackendError(UNREACHABLE);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}
