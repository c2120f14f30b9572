/** Follows the application's events for the life of the page and reconnects when the stream breaks. */
import type { Backend } from '../backend/backend';
import type { AppEvent } from '../backend/bindings';

const RECONNECT_MS = 3000;

/** Calls `missed` after each reconnection: state may have changed meanwhile and must be reloaded. */
export async function followEvents(
  backend: Backend,
  take: (event: AppEvent) => void,
  missed: () => Promise<void>,
): Promise<never> {
  const never = new AbortController().signal;
  for (let first = true; ; first = false) {
    const onOpen = () => void (first ? undefined : missed());
    await backend.watchApp((events) => events.forEach(take), onOpen, never).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}
