/**
 * The one seam between the page and the application. Two carriers stand behind it: Tauri IPC in the
 * window and HTTP in a browser. It knows names and types, and nothing of what they are for.
 */
import type { AppEvent, Calls, ErrorInfo, TurnEvent } from './bindings';

export type CallName = keyof Calls;
export type ArgsOf<N extends CallName> = Calls[N]['args'];
export type ResultOf<N extends CallName> = Calls[N]['result'];

/** Files of other programs over the window; only their names come. */
export type FileDrop =
  | { readonly type: 'over'; readonly paths: readonly string[] }
  | { readonly type: 'left' }
  | { readonly type: 'dropped'; readonly paths: readonly string[] };

/** What the desktop may ask for: `src-tauri/crates/api/src/asked.rs`. */
export type Asked =
  | { readonly type: 'model'; readonly path: string }
  | { readonly type: 'conversation'; readonly id: string }
  | { readonly type: 'new_chat'; readonly text: string }
  | { readonly type: 'find_model'; readonly query: string };

/** What the menu of the icon beside the clock says. */
export interface TrayLabels {
  readonly show: string;
  readonly new_chat: string;
  readonly quit: string;
}

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
  /** As `pickModelFile`, for an export of conversations, a backup, or what goes with a message. */
  pickFile?(kind: 'import' | 'backup' | 'attach'): Promise<string | null>;
  /** Where to write a file. Null: the user changed their mind. */
  pickSave?(name: string): Promise<string | null>;
  /** Shows a folder of ours in the system's file manager. */
  openDir?(which: 'data' | 'log'): Promise<void>;
  /** As `pickModelFile`, for a folder. */
  pickFolder?(): Promise<string | null>;
  /** Hands on what files are held over the window, and let go, until `signal` fires. */
  watchDrops?(onDrop: (drop: FileDrop) => void, signal: AbortSignal): Promise<void>;
  /** Hands on what the desktop asks for until `signal` fires, also what it asked before. */
  watchAsked?(onAsked: (asked: Asked) => void, signal: AbortSignal): Promise<void>;
  /** Shows everything larger or smaller; absent where that is the browser's affair. */
  setZoom?(factor: number): Promise<void>;
  /** Tells the user of something while the window isn't in front. Absent where that isn't possible. */
  notify?(title: string, text: string): Promise<void>;
  /** Puts an icon beside the clock, or takes it away (null). Absent where there is no window of ours. */
  setTray?(labels: TrayLabels | null): Promise<void>;
  /** Tells that the window is to be closed while an answer is being written, until `signal` fires. */
  watchClosing?(onAsked: () => void, signal: AbortSignal): Promise<void>;
  /** What the user said to that: the program ends, or goes on. */
  closeWindow?(close: boolean): Promise<void>;
  /** Opens an address outside, after the user was shown it. Absent where that isn't possible. */
  openLink?(url: string): void;
}

export class BackendError extends Error {
  readonly info: ErrorInfo;

  constructor(info: ErrorInfo) {
    super(info.message);
    this.name = 'BackendError';
    this.info = info;
  }

  get code(): string {
    return this.info.code;
  }

  get remedy(): string {
    return this.info.remedy;
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
