/** Starts the page as the quick window, with only the stores that a single chat needs. */
import { asErrorInfo } from '../backend/backend';
import type { AppEvent } from '../backend/bindings';
import { applySettings } from './apply-settings';
import { followEvents } from './follow-events';
import type { Inglenook } from './inglenook.svelte';

export async function startQuick(app: Inglenook): Promise<void> {
  const stores = [app.conversations, app.chat, app.models, app.settings];
  const take = (event: AppEvent) => {
    stores.forEach((it) => it.apply(event));
    if (event.type === 'setting_changed') applySettings(app);
  };
  void followEvents(app.backend, take, () => load(app));
  await load(app);
}

async function load(app: Inglenook): Promise<void> {
  try {
    const info = app.backend.call('app_info', {});
    await Promise.all([app.models.load(), app.settings.load()]);
    app.info = await info;
    app.failure = null;
    applySettings(app);
  } catch (thrown) {
    app.failure = asErrorInfo(thrown);
  }
}
