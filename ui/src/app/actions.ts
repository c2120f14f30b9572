/** Messages, models, presets and settings where they need more than their own store. */
import type { ModelEntry, Preset, SettingRow } from '../backend/bindings';
import type { Inglenook } from './inglenook.svelte';
import { copyText } from '../shared/clipboard';
import { shortened } from '../shared/format';
import { t } from '../i18n';

/** Into the trash; it can be had back at once. */
export async function deleteConversation(app: Inglenook, id: string): Promise<void> {
  const title = shortened(app.conversations.find(id)?.title ?? t('common.chat'));
  await app.attempt(async () => {
    await app.conversations.remove(id);
    if (app.chat.id === id) app.newChat();
    const action = app.undo(() => app.conversations.restore(id));
    app.toasts.show({ text: t('chat.deleted', { title }), tone: 'plain', action });
  });
}

export async function copy(app: Inglenook, text: string): Promise<void> {
  const done = await copyText(text);
  app.toasts.show({
    text: done ? t('common.copied') : t('common.copy_failed'),
    tone: done ? 'plain' : 'bad',
  });
}

/** Printed from the page, so that it has to be on it. */
export async function print(app: Inglenook, id: string): Promise<void> {
  app.ui.showChat();
  await app.chat.open(id);
  app.ui.printing = app.chat.id === id && app.chat.shown.length > 0;
}

/** The preset after the one in use, round and round. */
export async function nextPreset(app: Inglenook): Promise<void> {
  const next = app.presets.after(app.own.preset?.id ?? null);
  if (!next) return;
  await app.attempt(async () => {
    await app.own.begin(next);
    app.toasts.show({ text: t('shell.preset_named', { name: next.name }), tone: 'plain' });
  });
}

export async function deletePreset(app: Inglenook, preset: Preset): Promise<void> {
  await app.attempt(async () => {
    await app.presets.remove(preset.id);
    const action = app.undo(() => app.presets.save(null, preset.name, preset));
    app.toasts.show({ text: t('models.deleted', { name: preset.name }), tone: 'plain', action });
  });
}

export async function resetSettings(app: Inglenook, rows: readonly SettingRow[]): Promise<void> {
  for (const row of rows) await app.settings.reset(row.key);
  const action = app.undo(async () => {
    for (const row of rows) await app.settings.set(row.key, row.value);
  });
  const text = t('shell.settings_reset', { n: rows.length });
  app.toasts.show({ text, tone: 'plain', action });
}

/** The branch up to a message, as a conversation of its own. */
export async function branchOff(app: Inglenook, message: string): Promise<void> {
  await app.attempt(async () => {
    const copy = await app.backend.call('message_fork', { message });
    app.openConversation(copy.id);
  });
}

export async function deleteMessage(app: Inglenook, message: string): Promise<void> {
  await app.attempt(async () => {
    await app.chat.remove(message);
    const action = app.undo(() => app.chat.restore(message));
    app.toasts.show({ text: t('chat.message_deleted'), tone: 'plain', action });
  });
}

/** Out of the list, or off the disk where the file is our own; it can be had back. */
export async function removeModel(app: Inglenook, model: ModelEntry): Promise<void> {
  await app.attempt(async () => {
    await app.models.remove(model.id);
    if (app.ui.view === 'models') await app.library.load();
    const action = app.undo(async () => {
      await app.models.restore(model.id);
      if (app.ui.view === 'models') await app.library.load();
    });
    const done = model.source === 'owned' ? 'models.deleted' : 'models.off_the_list';
    app.toasts.show({ text: t(done, { name: model.name }), tone: 'plain', action });
  });
}

/** A folder whose name is to be written; with a conversation in it, and in a folder, if they are named. */
export async function addFolder(
  app: Inglenook,
  conversation: string | null,
  parent: string | null,
): Promise<void> {
  await app.attempt(async () => {
    const folder = await app.folders.add(t('common.new_folder'), parent);
    if (conversation !== null) await app.conversations.move(conversation, folder.id);
    app.ui.renaming = folder.id;
  });
}

/** At the message that was looked for, on whatever branch it is. */
export async function openMessage(app: Inglenook, id: string, message: string): Promise<void> {
  app.openConversation(id);
  await app.attempt(async () => {
    await app.chat.open(id);
    if (!app.chat.messages.some((it) => it.id === message)) await app.chat.choose(message, null);
    app.ui.wanted = message;
  });
}

/** An answer in the user's own words, as another version; false: it was not accepted. */
export async function rewrite(app: Inglenook, message: string, text: string): Promise<boolean> {
  let done = false;
  await app.attempt(async () => {
    await app.chat.changed(app.backend.call('answer_edit', { message, text }));
    done = true;
  });
  return done;
}
