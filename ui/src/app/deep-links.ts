/** Does what the desktop asks for: shows it, and leaves the rest to the user. */
import type { Asked } from '../backend/backend';
import type { Inglenook } from './inglenook.svelte';

export function show(app: Inglenook, asked: Asked): void {
  switch (asked.type) {
    case 'model': {
      const known = app.models.list.find((it) => it.path === asked.path);
      if (known === undefined) app.ui.importing = [...app.ui.importing, asked.path];
      else if (known.embeds) app.ui.showModels('here');
      else void talkTo(app, known.id);
      return;
    }
    case 'conversation':
      app.openConversation(asked.id);
      return;
    case 'new_chat':
      app.newChat();
      app.drafts.set(null, joined(app.drafts.get(null), asked.text));
      app.ui.focusComposer();
      return;
    case 'find_model':
      app.ui.showModels('discover');
      app.hub.want(asked.query);
  }
}

async function talkTo(app: Inglenook, model: string): Promise<void> {
  app.newChat();
  await app.attempt(() => app.chooseModel(model));
}

/** What was typed before stays. */
const joined = (draft: string, text: string): string =>
  [draft, text].filter((it) => it !== '').join('\n\n');
