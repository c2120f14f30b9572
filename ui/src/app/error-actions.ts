/** Maps error codes and early ends of answers to suggested actions, and those to buttons. */
import type { Message, ModelEntry } from '../backend/bindings';
import { localizeSetting, t } from '../i18n';
import { sectionName } from '../features/settings/sections';
import type { ButtonAction } from '../shared/button-action';
import type { Inglenook } from './inglenook.svelte';

export type SuggestedAction =
  /** Opens a settings row, or a section with a panel. */
  | { readonly to: 'setting'; readonly key: string }
  | { readonly to: 'section'; readonly name: string }
  /** Opens the list of models to free disk space, or the list of endpoints. */
  | { readonly to: 'space' | 'servers' }
  | { readonly to: 'picker' | 'new_chat' | 'options' | 'compact' | 'regenerate' | 'stop' }
  /** Opens the model's dialog to change its context size. */
  | { readonly to: 'larger' | 'smaller' }
  /** Switches to a model that sees, or takes the images out of the draft. */
  | { readonly to: 'seeing' | 'without_images' };

const setting = (key: string): SuggestedAction => ({ to: 'setting', key });
const to = <T extends Exclude<SuggestedAction['to'], 'setting' | 'section'>>(place: T) => ({
  to: place,
});
const TOOLS: SuggestedAction = { to: 'section', name: 'Tools' };
const DATA: SuggestedAction = { to: 'section', name: 'Data' };

/**
 * The first matching row wins; a code that ends in `.` or `_` is a prefix. A row without actions means that
 * no single click would help, or that the error card already offers the remedy.
 */
const SUGGESTIONS: readonly (readonly [code: string, ...SuggestedAction[]])[] = [
  ['request.context_full', to('compact'), to('larger'), to('new_chat')],
  ['request.queue_full', setting('limit_waiting')],
  ['limit.characters', setting('limit_characters')],
  ['limit.prompt_tokens', setting('limit_prompt_tokens'), to('new_chat')],
  ['limit.turns', setting('limit_concurrent'), setting('limit_waiting')],
  ['limit.seconds', setting('limit_seconds')],
  ['kv.memory_full', to('smaller'), to('picker'), setting('context_memory')],
  ['kernels.memory', to('smaller'), to('picker')],
  ['kernels.threads', setting('threads')],
  ['kernels.gpu_', setting('backend')],
  ['model.memory', to('smaller'), to('picker')],
  ['model.none_embeds', setting('embedding_model')],
  ['model.no_embeddings', setting('embedding_model')],
  ['model.embeds_only', setting('embedding_model'), to('picker')],
  ['model.draft_', setting('draft_model')],
  ['model.drafts_only', setting('draft_model'), to('picker')],
  ['model.kv_dtype', setting('kv')],
  ['model.remote', to('servers')],
  ['model.no_images', to('seeing'), to('without_images'), to('picker')],
  ['model.built_in'],
  ['model.not_removed'],
  ['model.place_taken'],
  ['model.', to('picker')],
  ['weights.', to('picker')],
  ['worker.killed', to('smaller'), to('picker')],
  ['worker.restarted'],
  ['worker.start'],
  ['worker.thread'],
  ['worker.', to('picker')],
  ['setting.draft_model', setting('draft_model')],
  ['compress.no_place', setting('compression')],
  ['compress.no_summary', setting('compression')],
  ['chat.cannot_continue', to('regenerate')],
  ['session.not_the_end', to('regenerate')],
  ['session.answering', to('stop')],
  ['guard.refused', setting('refusal_patterns')],
  ['network.offline', setting('offline')],
  ['remote.no_attention', setting('compression')],
  ['remote.not_here', to('picker')],
  ['remote.filtered', to('picker')],
  ['remote.silent', setting('endpoint_silence')],
  ['remote.refused', to('picker'), to('servers')],
  ['remote.only_chat'],
  ['remote.asked_again'],
  ['remote.continued_by_asking'],
  ['remote.busy', to('picker')],
  ['remote.failing', to('picker')],
  ['remote.broken'],
  ['remote.', to('servers'), to('picker')],
  ['hub.endpoint', setting('hub')],
  ['hub.key', setting('trusted_keys')],
  ['hub.signature'],
  ['download.no_space', to('space'), setting('download_place')],
  ['convert.no_space', to('space')],
  ['import.no_space', to('space')],
  ['io.no_space', to('space')],
  ['session.disk_full', to('space')],
  ['import.backup', DATA],
  ['keys.', setting('key_place')],
  ['attachment.scanned', to('seeing'), to('picker')],
  ['attachment.too_large', setting('attachment_megabytes')],
  ['attachment.too_many', setting('attachment_count')],
  ['tools.nothing_asked'],
  ['tools.form'],
  ['tools.form_closed'],
  ['tools.binary'],
  ['tools.', TOOLS],
];

export function suggestionsFor(code: string): readonly SuggestedAction[] {
  const row = SUGGESTIONS.find(
    ([it]) => it === code || (/[._]$/.test(it) && code.startsWith(it) && code !== it),
  );
  return row ? row.slice(1).filter((it) => typeof it === 'object') : [];
}

/** Suggestions after an answer that was cut off, apart from continuing it. */
export function suggestionsAfter(
  app: Inglenook,
  { stats }: Pick<Message, 'stats'>,
): readonly SuggestedAction[] {
  if (stats?.finish === 'context_full') return suggestionsFor('request.context_full');
  if (stats?.finish === 'time_up') return [setting('limit_seconds')];
  if (stats?.finish !== 'length') return [];
  const limit = stats.generated_tokens;
  if (app.chatOptions.current?.options.max_tokens === limit) return [to('options')];
  const ours = app.settings.find('limit_answer_tokens')?.value === limit;
  return [setting(ours ? 'limit_answer_tokens' : 'max_tokens')];
}

/** Suggestions for the end of an answer, whether it failed or stopped early. */
export function suggestionsForMessage(
  app: Inglenook,
  message: Message,
): readonly SuggestedAction[] {
  if (message.state !== 'failed') return suggestionsAfter(app, message);
  return message.error ? suggestionsFor(message.error.code) : [];
}

/** Converts suggestions to buttons and drops those that do not apply now. `of`: the model of a failed answer. */
export function toButtons(
  app: Inglenook,
  suggestions: readonly SuggestedAction[],
  of: string | null = null,
): ButtonAction[] {
  const buttons = suggestions.map((suggestion) => toButton(app, suggestion, of));
  return buttons.filter((it) => it !== null);
}

/** The most useful button, for toasts, which have space for one. */
export function firstButton(app: Inglenook, code: string): { action?: ButtonAction } {
  const [action] = toButtons(app, suggestionsFor(code));
  return action ? { action } : {};
}

function toButton(
  app: Inglenook,
  suggestion: SuggestedAction,
  of: string | null,
): ButtonAction | null {
  const { chat, ui } = app;
  const action = (label: string, run: () => void): ButtonAction => ({
    label,
    testid: `step-${suggestion.to}`,
    run: () => {
      ui.picker = false;
      run();
    },
  });
  switch (suggestion.to) {
    case 'setting': {
      const row = app.settings.find(suggestion.key);
      if (!row) return null;
      const label = t('turn.to_setting', { name: localizeSetting(row).label });
      return action(label, () => ui.showSetting(row.section, row.key));
    }
    case 'section': {
      const { name } = suggestion;
      if (ui.view === 'settings' && ui.section === name) return null;
      const label = t('turn.to_section', { name: sectionName(name) });
      return action(label, () => ui.showSetting(name, null));
    }
    case 'space':
      return action(t('turn.free_space'), () => ui.showModels('here'));
    case 'servers':
      if (ui.view === 'models' && ui.modelsTab === 'servers') return null;
      return action(t('turn.to_servers'), () => ui.showModels('servers'));
    case 'picker':
      // Without another model there is nothing to choose.
      if (app.models.answering.length === 1) return null;
      return action(t('turn.other_model'), () => {
        if (ui.view !== 'chat') ui.showChat();
        ui.picker = true;
      });
    case 'new_chat':
      return action(t('common.new_chat'), () => app.newChat());
    case 'options':
      return action(t('turn.to_options'), () => (ui.options = true));
    case 'compact':
      if (chat.id === null || !isIdle(app)) return null;
      return action(t('turn.compact_now'), () => void chat.compact());
    case 'regenerate': {
      const last = chat.shown.at(-1);
      if (last?.role !== 'assistant' || !isIdle(app)) return null;
      return action(t('turn.regenerate'), () => void chat.regenerate(last.id));
    }
    case 'stop':
      if (!chat.answering) return null;
      return action(t('turn.stop_it'), () => void chat.stop());
    case 'seeing': {
      const model = app.models.list.find(
        (it) => it.skills?.images === true && it.state.state !== 'unusable',
      );
      if (!model) return null;
      return action(
        t('files.use_seeing', { name: model.name }),
        () => void app.chooseModel(model.id),
      );
    }
    case 'without_images': {
      if (!app.attachments.files(chat.id).some((it) => it.kind === 'image')) return null;
      return action(t('files.without_images'), () => app.attachments.removeImages(chat.id));
    }
    case 'larger':
    case 'smaller': {
      const model = app.models.find(of ?? app.model?.id);
      if (model === undefined || model.source === 'remote') return null;
      const isLarger = suggestion.to === 'larger';
      if (isLarger && !canGrow(app, model)) return null;
      const label = t(isLarger ? 'turn.larger_context' : 'turn.smaller_context');
      return action(label, () => (ui.modelDetails = model.id));
    }
  }
}

/** Actions that start an answer or change its chat need one that is not answering. */
const isIdle = ({ chat }: Inglenook): boolean =>
  !chat.answering && !chat.sending && !chat.compacting;

/** Whether a model can hold more than the context that it has now. Unknown sizes may grow. */
export function canGrow(app: Inglenook, model: Pick<ModelEntry, 'context_length'>): boolean {
  const stats = app.chat.shown.findLast((it) => it.stats !== null)?.stats;
  const now = app.draftCount.count?.context_limit ?? stats?.context_limit ?? 0;
  return model.context_length === 0 || now === 0 || model.context_length > now;
}
