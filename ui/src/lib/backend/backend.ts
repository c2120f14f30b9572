/**
 * The one seam between the page and the application. Two carriers stand behind it: Tauri IPC in the
 * window and HTTP in a browser. It knows names and types, and nothing of what they are for.
 */
import type { AppEvent, Calls, ErrorInfo, TurnEvent } from './bindings';

export type CallName = keyof Calls;
export type ArgsOf<N extends CallName> = Calls[N]['args'];
export type ResultOf<N extends CallName> = Calls[N]['result'];

export interface Backend {
  readonly kind: 'window' | 'browser';

  /** Rejects with a `BackendError`, never with anything else. */
  call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>>;

  /** Hands on the events after `afterSeq` until the turn ends (resolves) or the carrier breaks (rejects). */
  watchTurn(
    turn: string,
    afterSeq: number,
    onEvents: (events: TurnEvent[]) => void,
    signal: AbortSignal,
  ): Promise<void>;

  /** Hands on what happens beside turns until `signal` fires or the carrier breaks. */
  watchApp(
    onEvents: (events: AppEvent[]) => void,
    onOpen: () => void,
    signal: AbortSignal,
  ): Promise<void>;

  /** The system's file dialog; absent where there is none. Null: the user changed their mind. */
  pickModelFile?(): Promise<string | null>;
  /** As `pickModelFile`, for an export of conversations or a backup. */
  pickFile?(kind: 'import' | 'backup'): Promise<string | null>;
  /** Where to write a file. Null: the user changed their mind. */
  pickSave?(name: string): Promise<string | null>;
  openDataDir?(): Promise<void>;
  /** Opens an address outside, after the user was shown it. Absent where that isn't possible. */
  openLink?(url: string): void;
}

export class BackendError extends Error {
  readonly code: string;
  readonly remedy: string;

  constructor(info: ErrorInfo) {
    super(info.message);
    this.name = 'BackendError';
    this.code = info.code;
    this.remedy = info.remedy;
  }

  get info(): ErrorInfo {
    return { code: this.code, message: this.message, remedy: this.remedy };
  }
}

/** Whatever was thrown, as something a person can read. */
export function asErrorInfo(thrown: unknown): ErrorInfo {
  if (thrown instanceof BackendError) return thrown.info;
  if (isErrorInfo(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: 'ui.unexpected', message, remedy: 'Try again; if it stays, restart Inglenook.' };
}

export function isErrorInfo(value: unknown): value is ErrorInfo {
  if (typeof value !== 'object' || value === null) return false;
  const it = value as Record<string, unknown>;
  return (
    typeof it.code === 'string' && typeof it.message === 'string' && typeof it.remedy === 'string'
  );
}
