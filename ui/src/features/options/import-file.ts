/** Makes presets of files: exported presets, or the instructions of skills. */
import { BackendError } from '../../backend/backend';
import type { Preset } from '../../backend/bindings';
import { t } from '../../i18n';
import type { PresetsState } from './presets.svelte';
import { isSkillFile, readSkill } from './skill-file';

type Target = Pick<PresetsState, 'import' | 'saveInstructions'>;
type NamedText = Pick<File, 'name' | 'text'>;

/** Returns the last preset. `attempt` reports a file that cannot be read, which keeps no other out. */
export async function importAll(
  files: readonly NamedText[],
  presets: Target,
  attempt: (work: () => Promise<unknown>) => Promise<void>,
): Promise<Preset | null> {
  let last: Preset | null = null;
  for (const file of files) await attempt(async () => (last = await importFile(presets, file)));
  return last;
}

async function importFile(presets: Target, file: NamedText): Promise<Preset> {
  const text = await file.text();
  if (!isSkillFile(file.name)) return presets.import(text);
  const skill = readSkill(text, file.name);
  if (skill) return presets.saveInstructions(skill.name, skill.instructions);
  throw new BackendError({
    code: 'ui.skill_empty',
    message: t('instruments.skill_empty', { file: file.name }),
    remedy: t('instruments.skill_empty_remedy'),
  });
}
