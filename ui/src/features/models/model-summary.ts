/** Summarizes models and groups them for lists. */
import type { ModelEntry, ModelSource } from '../../backend/bindings';
import { bytes, contextLength, parameters } from '../../shared/format';
import { t } from '../../i18n';

type SummaryFields = Pick<ModelEntry, 'parameters' | 'dtype' | 'bytes' | 'context_length'>;

export const summarizeModel = (model: SummaryFields): string[] =>
  [
    model.parameters > 0 ? parameters(model.parameters) : '',
    model.dtype,
    model.bytes > 0 ? bytes(model.bytes) : '',
    model.context_length > 0
      ? t('format.context_length', { length: contextLength(model.context_length) })
      : '',
  ].filter(Boolean);

export interface Capability {
  readonly key: string;
  readonly name: string;
  readonly help: string;
}

/** Capabilities apart from answering, as far as known. */
export function capabilitiesOf({ skills }: Pick<ModelEntry, 'skills'>): Capability[] {
  if (!skills) return [];
  const { tools, thinking, images } = skills;
  return [
    ...(images
      ? [{ key: 'images', name: t('models.skill_images'), help: t('models.images_help') }]
      : []),
    ...(tools
      ? [{ key: 'tools', name: t('models.skill_tools'), help: t('models.tools_help') }]
      : []),
    ...(thinking === 'never'
      ? []
      : [
          {
            key: 'thinking',
            name: t('models.skill_thinking'),
            help: t(`models.thinking_${thinking}`),
          },
        ]),
  ];
}

/** The setting that selects the default model of a model's kind. */
export function settingOf(
  model: Pick<ModelEntry, 'embeds' | 'only_drafts'>,
): 'model' | 'embedding_model' | 'draft_model' {
  if (model.embeds) return 'embedding_model';
  return model.only_drafts ? 'draft_model' : 'model';
}

export const sourceName = (source: ModelSource): string => t(`models.source_${source}`);

export interface ModelGroup {
  readonly name: string;
  readonly models: readonly ModelEntry[];
}

/** Groups models: loaded, other local ones, remote ones. */
export function groupModels(models: readonly ModelEntry[]): ModelGroup[] {
  const isLoaded = (it: ModelEntry) => it.state.state === 'ready' || it.state.state === 'loading';
  const isRemote = (it: ModelEntry) => it.source === 'remote';
  const groups = [
    { name: t('models.loaded'), models: models.filter((it) => isLoaded(it) && !isRemote(it)) },
    { name: t('models.here'), models: models.filter((it) => !isLoaded(it) && !isRemote(it)) },
    { name: t('models.servers'), models: models.filter(isRemote) },
  ];
  return groups.filter((it) => it.models.length > 0);
}
