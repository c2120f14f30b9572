/**
 * The only interface between the page and the application. Two transports implement it: Tauri IPC in the
 * window and HTTP in a browser. It carries names and types without knowing their purpose.
 */
import type { AppEvent, Calls, ErrorInfo, TurnEvent } from './bindings';

export type CallName = keyof Calls;
export type ArgsOf<N extends CallName> = Calls[N]['args'];
export type ResultOf<N extends CallName> = Calls[N]['result'];

/** Files dragged over the window. Only their paths are known. */
export type FileDrop =
  | { readonly type: 'over'; readonly paths: readonly string[] }
  | { readonly type: 'left' }
  | { readonly type: 'dropped'; readonly paths: readonly string[] };

/** What the desktop may ask the page to show. Mirrors `app/src/desktop/deep_links.rs`. */
export type DeepLink =
  | { readonly type: 'model'; readonly path: string }
  | { readonly type: 'conversation'; readonly id: string }
  | { readonly type: 'new_chat'; readonly text: string }
  | { readonly type: 'find_model'; readonly query: string };

/** Texts of the tray menu. */
export interface TrayLabels {
  readonly show: string;
  readonly new_chat: string;
  readonly quick: string;
  readonly quit: string;
}

export interface Backend {
  readonly kind: 'window' | 'browser';

  /** Calls the application. Rejects only with a `BackendError`. */
  call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>>;

  /** Streams the events after `afterSeq`. Resolves when the turn ends, rejects when the transport fails. */
  watchTurn(
    turn: string,
    afterSeq: number,
    onEvents: (events: TurnEvent[]) => void,
    signal: AbortSignal,
  ): Promise<void>;

  /** Streams application events until `signal` fires or the transport fails. */
  watchApp(
    onEvents: (events: AppEvent[]) => void,
    onOpen: () => void,
    signal: AbortSignal,
  ): Promise<void>;

  /** Opens the system's file dialog; absent where there is none. Null: cancelled. */
  pickModelFile?(): Promise<string | null>;
  /** As `pickModelFile`, for an export of conversations, a backup or an attachment. */
  pickFile?(kind: 'import' | 'backup' | 'attach'): Promise<string | null>;
  /** Asks where to save a file. Null: cancelled. */
  pickSave?(name: string): Promise<string | null>;
  /** Asks where to save a text and writes it there; absent in a browser. Null: cancelled. */
  saveText?(name: string, text: string): Promise<string | null>;
  /** Paths of files that another program has copied; absent where a paste event has the files. */
  clipboardPaths?(): Promise<string[]>;
  /** A picture that another program has copied, as a file's bytes; absent where a paste event has it. */
  clipboardPicture?(): Promise<ArrayBuffer>;
  /** Address of an empty frame with a separate policy, for HTML that a model wrote. */
  previewFrame(scripts: boolean): string;
  /** Shows one of our folders in the system's file manager. */
  openDir?(which: 'data' | 'log'): Promise<void>;
  /** As `pickModelFile`, for a folder. */
  pickFolder?(): Promise<string | null>;
  /** Reports files dragged over the window and dropped, until `signal` fires. */
  watchDrops?(onDrop: (drop: FileDrop) => void, signal: AbortSignal): Promise<void>;
  /** Reports deep links until `signal` fires, including earlier ones that still wait. */
  watchDeepLinks?(onLink: (link: DeepLink) => void, signal: AbortSignal): Promise<void>;
  /** Sets the zoom factor; absent in a browser, which has its own zoom. */
  setZoom?(factor: number): Promise<void>;
  /** Sends a desktop notification; absent where that is impossible. */
  notify?(title: string, text: string): Promise<void>;
  /** Shows the tray icon, or removes it (null); absent in a browser. */
  setTray?(labels: TrayLabels | null): Promise<void>;
  /** Reports attempts to close the window during an answer, until `signal` fires. */
  watchClosing?(onAsked: () => void, signal: AbortSignal): Promise<void>;
  /** Reports the user's decision: quit, or stay. */
  closeWindow?(close: boolean): Promise<void>;
  /** Installs the downloaded version and restarts; absent in a browser. During an answer it asks as closing does. */
  restartToUpdate?(): Promise<void>;
  /** Sets the keys that open the quick window from any program (null: none); absent where there are none. */
  setQuickKeys?(keys: string | null): Promise<void>;
  /** Shows the quick window. */
  showQuick?(): Promise<void>;
  /** Hides the quick window; only there. */
  hideQuick?(): Promise<void>;
  /** From the quick window: continues in the main one, in a conversation or with a text that was not sent yet. */
  openInMain?(conversation: string | null, text: string): Promise<void>;
  /** Opens an address in the user's browser or mail program, after the user has seen it. */
  openLink(url: string): Promise<void>;
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

/** Converts anything thrown to a readable error. */
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
