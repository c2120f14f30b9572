// The changelog as the window shows it: without its title and without what only a reader of the file needs.

/**
 * The changelog from its first version on. A version's name stands without brackets, and a paragraph or an entry on one
 * line: answers of models break where their lines do.
 */
export function releaseNotes(changelog: string): string {
  const start = Math.max(0, changelog.search(/^## /m));
  return changelog
    .slice(start)
    .replace(/^## \[([^\]]+)\]/gm, '## $1')
    .replace(/(\S)\n *(?=[^\s#|>-])/g, '$1 ');
}

/** Fetched by those who read it. */
export async function loadReleaseNotes(): Promise<string> {
  const file = await import('../../../../CHANGELOG.md?raw');
  return releaseNotes(file.default);
}
