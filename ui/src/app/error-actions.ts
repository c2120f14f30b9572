/** Maps error codes and early ends of answers to suggested actions, and those to buttons. */
import type { Message } from '../backend/bindings';
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
  | { readonly to: 'larger' | 'smaller' };

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
  ['model.draft_vocabulary', setting('draft_model')],
  ['model.kv_dtype', setting('kv')],
  ['model.remote', to('servers')],
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
  ['attachment.too_large', setting('attachment_megabytes')],
  ['attachment.too_many', setting('attachment_count')],
  ['tools.nothing_asked'],
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

/** Converts suggestions to buttons and drops those that do not apply now. */
export function toButtons(app: Inglenook, suggestions: readonly SuggestedAction[]): ButtonAction[] {
  return suggestions.map((suggestion) => toButton(app, suggestion)).filter((it) => it !== null);
}

/** The most useful button, for toasts, which have space for one. */
export function firstButton(app: Inglenook, code: string): { action?: ButtonAction } {
  const [action] = toButtons(app, suggestionsFor(code));
  return action ? { action } : {};
}

function toButton(app: Inglenook, suggestion: SuggestedAction): ButtonAction | null {
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
      return action(t('turn.other_model'), () => {
        if (ui.view !== 'chat') ui.showChat();
        ui.picker = true;
      });
    case 'new_chat':
      return action(t('common.new_chat'), () => app.newChat());
    case 'options':
      return action(t('turn.to_options'), () => (ui.options = true));
    case 'compact':
      if (chat.id === null) return null;
      return action(t('turn.compact_now'), () => void chat.compact());
    case 'regenerate': {
      const last = chat.shown.at(-1);
      if (last?.role !== 'assistant') return null;
      return action(t('turn.regenerate'), () => void chat.regenerate(last.id));
    }
    case 'stop':
      if (!chat.answering) return null;
      return action(t('turn.stop_it'), () => void chat.stop());
    // `TurnErrorActions` renders the dialog itself.
    case 'larger':
    case 'smaller':
      return null;
  }
}
