/** What can be done at once about an error or an answer's end: by code, and as buttons that do it. */
import type { Message } from '../backend/bindings';
import { spoken, t } from '../i18n';
import { sectionName } from '../features/settings/sections';
import type { ButtonAction } from '../shared/button-action';
import type { Inglenook } from './inglenook.svelte';

export type Step =
  /** A row of the settings, or a section that has a panel of its own. */
  | { readonly to: 'setting'; readonly key: string }
  | { readonly to: 'section'; readonly name: string }
  /** Models that can be removed; other servers. */
  | { readonly to: 'space' | 'servers' }
  | { readonly to: 'picker' | 'new_chat' | 'options' | 'fold' | 'again' | 'stop' }
  /** The model's own dialog, in which its context is set. */
  | { readonly to: 'larger' | 'smaller' };

const setting = (key: string): Step => ({ to: 'setting', key });
const to = <T extends Exclude<Step['to'], 'setting' | 'section'>>(place: T) => ({ to: place });
const TOOLS: Step = { to: 'section', name: 'Tools' };
const DATA: Step = { to: 'section', name: 'Data' };

/**
 * The first that fits counts; one that ends with a dot or a dash stands for all that begin so. None:
 * nothing that one press could do, or what helps stands beside the error already.
 */
const STEPS: readonly (readonly [code: string, ...Step[]])[] = [
  ['request.context_full', to('fold'), to('larger'), to('new_chat')],
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
  ['chat.cannot_continue', to('again')],
  ['session.not_the_end', to('again')],
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

export function stepsOf(code: string): readonly Step[] {
  const row = STEPS.find(
    ([it]) => it === code || (/[._]$/.test(it) && code.startsWith(it) && code !== it),
  );
  return row ? row.slice(1).filter((it) => typeof it === 'object') : [];
}

/** After an answer that did not end by itself, beside going on with it. */
export function stepsAfter(app: Inglenook, { stats }: Pick<Message, 'stats'>): readonly Step[] {
  if (stats?.finish === 'context_full') return stepsOf('request.context_full');
  if (stats?.finish === 'time_up') return [setting('limit_seconds')];
  if (stats?.finish !== 'length') return [];
  const limit = stats.generated_tokens;
  if (app.own.now?.options.max_tokens === limit) return [to('options')];
  const ours = app.settings.find('limit_answer_tokens')?.value === limit;
  return [setting(ours ? 'limit_answer_tokens' : 'max_tokens')];
}

/** For the end of an answer, whether it failed or stopped early. */
export function stepsForMessage(app: Inglenook, message: Message): readonly Step[] {
  if (message.state !== 'failed') return stepsAfter(app, message);
  return message.error ? stepsOf(message.error.code) : [];
}

/** Those that can be taken here and now. */
export function actionsOf(app: Inglenook, steps: readonly Step[]): ButtonAction[] {
  return steps.map((step) => actionOf(app, step)).filter((it) => it !== null);
}

/** The main one, where there is room for one alone. */
export function firstOf(app: Inglenook, code: string): { action?: ButtonAction } {
  const [action] = actionsOf(app, stepsOf(code));
  return action ? { action } : {};
}

function actionOf(app: Inglenook, step: Step): ButtonAction | null {
  const { chat, ui } = app;
  const action = (label: string, run: () => void): ButtonAction => ({
    label,
    testid: `step-${step.to}`,
    run: () => {
      ui.picker = false;
      run();
    },
  });
  switch (step.to) {
    case 'setting': {
      const row = app.settings.find(step.key);
      if (!row) return null;
      const label = t('turn.to_setting', { name: spoken(row).label });
      return action(label, () => ui.showSetting(row.section, row.key));
    }
    case 'section': {
      const { name } = step;
      if (ui.view === 'settings' && ui.section === name) return null;
      const label = t('turn.to_section', { name: sectionName(name) });
      return action(label, () => ui.showSetting(name, null));
    }
    case 'space':
      return action(t('turn.free_space'), () => ui.showModels('here'));
    case 'servers':
      if (ui.view === 'models' && ui.models === 'servers') return null;
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
    case 'fold':
      if (chat.id === null) return null;
      return action(t('turn.compact_now'), () => void chat.compact());
    case 'again': {
      const last = chat.shown.at(-1);
      if (last?.role !== 'assistant') return null;
      return action(t('turn.regenerate'), () => void chat.regenerate(last.id));
    }
    case 'stop':
      if (!chat.answering) return null;
      return action(t('turn.stop_it'), () => void chat.stop());
    // The dialog is drawn by whoever draws the buttons.
    case 'larger':
    case 'smaller':
      return null;
  }
}
