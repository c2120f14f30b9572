/** Transport inside the window: Tauri IPC. */
import { Channel, convertFileSrc, invoke, isTauri } from '@tauri-apps/api/core';
import {
  BackendError,
  asErrorInfo,
  type Backend,
  type ArgsOf,
  type DeepLink,
  type CallName,
  type FileDrop,
  type ResultOf,
  type TrayLabels,
} from './backend';
import type { AppEvent, TurnEvent } from './bindings';
import { wellFormed } from './well-formed';

export const inWindow = (): boolean => isTauri();

async function invokeCommand<T>(command: string, args: Record<string, unknown>): Promise<T> {
  try {
    return await invoke<T>(command, wellFormed(args));
  } catch (thrown) {
    throw new BackendError(asErrorInfo(thrown));
  }
}

/** Creates a channel that stops delivering after `signal` fires. */
function channelFor<E>(onEvents: (events: E[]) => void, signal: AbortSignal): Channel<E | E[]> {
  const channel = new Channel<E | E[]>();
  channel.onmessage = (message) => {
    if (!signal.aborted) onEvents(Array.isArray(message) ? message : [message]);
  };
  return channel;
}

/** Time that the last events of a turn may take after the command has returned. */
const LAST_EVENTS_MS = 2000;

const isLast = (event: TurnEvent): boolean =>
  event.kind.type === 'done' || event.kind.type === 'failed';

/** What every window may do. */
class WindowBackend implements Backend {
  readonly kind = 'window';

  call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>> {
    return invokeCommand('call', { name, args });
  }

  watchTurn(
    turn: string,
    afterSeq: number,
    onEvents: (events: TurnEvent[]) => void,
    signal: AbortSignal,
  ): Promise<void> {
    // The command's result may overtake the last events. Those end the watch; the result only starts a time limit.
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      const channel = channelFor<TurnEvent>((events) => {
        onEvents(events);
        if (events.some(isLast)) resolve();
      }, signal);
      invokeCommand('watch_turn', { turn, afterSeq, channel }).then(
        () => setTimeout(resolve, LAST_EVENTS_MS),
        reject,
      );
    });
  }

  async watchApp(
    onEvents: (events: AppEvent[]) => void,
    onOpen: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    await invokeCommand('watch_app', { channel: channelFor<AppEvent>(onEvents, signal) });
    onOpen();
    // IPC lives as long as the window, so it never reconnects.
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  previewFrame(scripts: boolean): string {
    return convertFileSrc(scripts ? 'scripts' : 'static', 'preview');
  }

  openLink(url: string): Promise<void> {
    return invokeCommand('open_link', { url });
  }

  setZoom(factor: number): Promise<void> {
    return invokeCommand('set_zoom', { factor });
  }
}

/** The main window. */
export class TauriBackend extends WindowBackend {
  pickFile(kind: 'import' | 'backup' | 'attach'): Promise<string | null> {
    return invokeCommand('pick_file', { kind });
  }

  pickSave(name: string): Promise<string | null> {
    return invokeCommand('pick_save', { name });
  }

  saveText(name: string, text: string): Promise<string | null> {
    return invokeCommand('save_text', { name, text });
  }

  clipboardPaths(): Promise<string[]> {
    return invokeCommand('clipboard_paths', {});
  }

  clipboardPicture(): Promise<ArrayBuffer> {
    return invokeCommand('clipboard_picture', {});
  }

  pickModelFile(): Promise<string | null> {
    return invokeCommand('pick_model_file', {});
  }

  openDir(which: 'data' | 'log'): Promise<void> {
    return invokeCommand('open_dir', { which });
  }

  pickFolder(): Promise<string | null> {
    return invokeCommand('pick_folder', {});
  }

  watchDrops(onDrop: (drop: FileDrop) => void, signal: AbortSignal): Promise<void> {
    const channel = channelFor<FileDrop>((drops) => drops.forEach(onDrop), signal);
    return invokeCommand('watch_drops', { channel });
  }

  watchDeepLinks(onLink: (link: DeepLink) => void, signal: AbortSignal): Promise<void> {
    const channel = channelFor<DeepLink>((links) => links.forEach(onLink), signal);
    return invokeCommand('watch_asked', { channel });
  }

  setTray(labels: TrayLabels | null): Promise<void> {
    return invokeCommand('set_tray', { labels });
  }

  watchClosing(onAsked: () => void, signal: AbortSignal): Promise<void> {
    return invokeCommand('watch_closing', { channel: channelFor<null>(onAsked, signal) });
  }

  closeWindow(close: boolean): Promise<void> {
    return invokeCommand('close_window', { close });
  }

  restartToUpdate(): Promise<void> {
    return invokeCommand('restart_to_update', {});
  }

  notify(title: string, text: string): Promise<void> {
    return invokeCommand('notify', { title, text });
  }

  setQuickKeys(keys: string | null): Promise<void> {
    return invokeCommand('set_quick_keys', { keys });
  }

  showQuick(): Promise<void> {
    return invokeCommand('show_quick', {});
  }
}

/** The quick window: `src-tauri/capabilities/quick.json` permits no more. */
export class QuickBackend extends WindowBackend {
  hideQuick(): Promise<void> {
    return invokeCommand('hide_quick', {});
  }

  openInMain(conversation: string | null, text: string): Promise<void> {
    return invokeCommand('open_in_main', { conversation, text });
  }
}
