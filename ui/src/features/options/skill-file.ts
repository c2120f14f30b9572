/**
 * Reads a `SKILL.md` (agentskills.io) as a preset: its name and its instructions. Scripts and other files of the skill's
 * folder are never opened.
 */
export interface Skill {
  readonly name: string;
  readonly instructions: string;
}

/** Longer names are cut. */
const MAX_NAME_CHARS = 60;

export const isSkillFile = (fileName: string): boolean => /\.(md|markdown)$/i.test(fileName);

/** Null: the file holds no instructions. `fileName` names a skill that does not name itself. */
export function readSkill(text: string, fileName: string): Skill | null {
  const plain = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  const match = /^---[ \t]*\n([^]*?)\n---[ \t]*(?:\n|$)/.exec(plain);
  const instructions = (match ? plain.slice(match[0].length) : plain).trim();
  if (instructions === '') return null;
  const own = nameIn(match?.[1] ?? '');
  const name = own === '' ? fileName.replace(/\.[^.]+$/, '') : own;
  return { name: [...name].slice(0, MAX_NAME_CHARS).join(''), instructions };
}

/** The name in front matter, which is a line of YAML. */
function nameIn(frontMatter: string): string {
  const value = /^name:[ \t]*(.*)$/m.exec(frontMatter)?.[1]?.trim() ?? '';
  const quoted = /^(["'])(.*)\1(?:\s+#.*)?$/.exec(value);
  return (quoted?.[2] ?? value.replace(/\s+#.*$/, '')).trim();
}
