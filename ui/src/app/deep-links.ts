/** Opens what a deep link or the desktop asks for. It only shows things; the user does the rest. */
import type { DeepLink } from '../backend/backend';
import type { Inglenook } from './inglenook.svelte';

export function openDeepLink(app: Inglenook, link: DeepLink): void {
  switch (link.type) {
    case 'model': {
      const known = app.models.list.find((it) => it.path === link.path);
      if (known === undefined) app.ui.pendingImports = [...app.ui.pendingImports, link.path];
      else if (known.embeds || known.only_drafts) app.ui.showModels('here');
      else void chatWith(app, known.id);
      return;
    }
    case 'conversation':
      app.openConversation(link.id);
      return;
    case 'new_chat':
      app.newChat();
      app.drafts.set(null, joinDrafts(app.drafts.get(null), link.text));
      app.ui.focusComposer();
      return;
    case 'find_model':
      app.ui.showModels('discover');
      app.hub.search(link.query);
  }
}

async function chatWith(app: Inglenook, model: string): Promise<void> {
  app.newChat();
  await app.attempt(() => app.chooseModel(model));
}

/** Appends to the draft, so that nothing typed is lost. */
const joinDrafts = (draft: string, text: string): string =>
  [draft, text].filter((it) => it !== '').join('\n\n');
