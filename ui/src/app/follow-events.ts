/** Hears what the application says for as long as the page lives, however often that breaks off. */
import type { Backend } from '../backend/backend';
import type { AppEvent } from '../backend/bindings';

const RECONNECT_MS = 3000;

/** `missed`: what happened while nobody listened is to be asked for anew. */
export async function follow(
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
