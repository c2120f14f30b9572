/** Options for a single answer that override those of its chat. */
import type { DraftCount, ModelSkills, OneOffOptions, SettingRow } from '../../backend/bindings';
import { localizeSetting } from '../../i18n';

export const NO_OVERRIDES: OneOffOptions = {
  temperature: null,
  top_p: null,
  seed: null,
  thinking: null,
  effort: null,
};

/** The setting that each option overrides. */
const SETTINGS: Readonly<Record<keyof OneOffOptions, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  seed: 'seed',
  thinking: 'thinking',
  effort: 'reasoning_effort',
};

export interface ThinkingChoice {
  readonly key: 'thinking' | 'effort';
  readonly setting: string;
}

type CountedDraft = Pick<DraftCount, 'can_think_or_not' | 'has_efforts'> | null;

/** Which thinking options a model has. For remote models, the draft count reports them. */
export function thinkingChoices(
  skills: ModelSkills | null | undefined,
  counted: CountedDraft,
): ThinkingChoice[] {
  const efforts = skills ? skills.thinking === 'graded' : counted?.has_efforts === true;
  const either = skills ? skills.thinking === 'switched' : counted?.can_think_or_not === true;
  if (efforts) return [{ key: 'effort', setting: SETTINGS.effort }];
  return either ? [{ key: 'thinking', setting: SETTINGS.thinking }] : [];
}

/** Reads the form. Undefined if it is empty. */
export function readOneOffOptions(form: FormData): OneOffOptions | undefined {
  const text = (key: keyof OneOffOptions): string | null => {
    const value = form.get(key);
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
  };
  const number = (key: keyof OneOffOptions): number | null => {
    const value = text(key);
    return value === null ? null : Number(value);
  };
  const once: OneOffOptions = {
    temperature: number('temperature'),
    top_p: number('top_p'),
    seed: number('seed'),
    thinking: text('thinking'),
    effort: text('effort'),
  };
  return Object.values(once).some((value) => value !== null) ? once : undefined;
}

/** Lists the overridden options with the names that the settings use. */
export function describeOneOffOptions(
  once: OneOffOptions,
  find: (key: string) => SettingRow | undefined,
): string[] {
  return (Object.keys(SETTINGS) as (keyof OneOffOptions)[]).flatMap((key) => {
    const value = once[key];
    const found = find(SETTINGS[key]);
    const row = found && localizeSetting(found);
    if (value === null || !row) return [];
    const options = row.kind.kind === 'choice' ? row.kind.options : [];
    const text = options.find((it) => it.value === value)?.label ?? String(value);
    return [`${row.label} ${text}`];
  });
}
