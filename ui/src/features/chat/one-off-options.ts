/** What one answer is asked for otherwise than the others of its chat. */
import type { DraftCount, ModelSkills, Once, SettingRow } from '../../backend/bindings';
import { spoken } from '../../i18n';

export const NOTHING: Once = {
  temperature: null,
  top_p: null,
  seed: null,
  thinking: null,
  effort: null,
};

/** The setting that each stands over. */
const SETTINGS: Readonly<Record<keyof Once, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  seed: 'seed',
  thinking: 'thinking',
  effort: 'reasoning_effort',
};

export interface Choice {
  readonly key: 'thinking' | 'effort';
  readonly setting: string;
}

type Counted = Pick<DraftCount, 'can_think_or_not' | 'has_efforts'> | null;

/** What the model can be told of its thinking; another server's model by what was told when a draft was counted. */
export function choicesFor(skills: ModelSkills | null | undefined, counted: Counted): Choice[] {
  const efforts = skills ? skills.thinking === 'graded' : counted?.has_efforts === true;
  const either = skills ? skills.thinking === 'switched' : counted?.can_think_or_not === true;
  if (efforts) return [{ key: 'effort', setting: SETTINGS.effort }];
  return either ? [{ key: 'thinking', setting: SETTINGS.thinking }] : [];
}

/** As it was filled in; undefined: nothing was. */
export function onceOf(form: FormData): Once | undefined {
  const text = (key: keyof Once): string | null => {
    const value = form.get(key);
    return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
  };
  const number = (key: keyof Once): number | null => {
    const value = text(key);
    return value === null ? null : Number(value);
  };
  const once: Once = {
    temperature: number('temperature'),
    top_p: number('top_p'),
    seed: number('seed'),
    thinking: text('thinking'),
    effort: text('effort'),
  };
  return Object.values(once).some((value) => value !== null) ? once : undefined;
}

/** Each thing that was asked for, with its name, as the settings call them. */
export function onceSaid(once: Once, find: (key: string) => SettingRow | undefined): string[] {
  return (Object.keys(SETTINGS) as (keyof Once)[]).flatMap((key) => {
    const value = once[key];
    const found = find(SETTINGS[key]);
    const row = found && spoken(found);
    if (value === null || !row) return [];
    const options = row.kind.kind === 'choice' ? row.kind.options : [];
    const said = options.find((it) => it.value === value)?.label ?? String(value);
    return [`${row.label} ${said}`];
  });
}
