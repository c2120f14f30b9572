/** What the buttons of the guide are called, and what they open. */
import type { HelpTarget } from '../backend/bindings';
import { sectionKeyName, sectionName } from '../features/settings/sections';
import { localizeSetting, t } from '../i18n';
import type { CommandId } from '../shared/keys';
import { run } from './commands';
import type { Inglenook } from './inglenook.svelte';

export function targetLabel(app: Inglenook, target: HelpTarget): string {
  if (target.kind === 'command') return t(`commands.${target.id as CommandId}`);
  if (target.kind === 'section') return sectionName(sectionKeyName(target.key));
  const row = app.settings.find(target.key);
  return row ? localizeSetting(row).label : target.key;
}

export function openTarget(app: Inglenook, target: HelpTarget): void {
  if (target.kind === 'command') {
    // Commands of a chat do nothing beside it.
    app.ui.showChat();
    run(app, target.id as CommandId);
  } else if (target.kind === 'section') app.ui.showSetting(sectionKeyName(target.key), null);
  else {
    const row = app.settings.find(target.key);
    if (row) app.ui.showSetting(row.section, row.key);
  }
}

/** Opens the guide at an article. */
export function showArticle(app: Inglenook, id: string): void {
  app.help.show(id);
  app.ui.view = 'help';
}
