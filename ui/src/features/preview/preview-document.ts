/** The document that a preview frame shows. Its policy forbids loading; links that only prepare it are removed here. */
import type { PreviewSource } from '../../shared/code-actions.svelte';

/** `<link>`, with quoted values that may contain `>`. */
const LINK = /<link\b(?:[^>"']|"[^"]*"|'[^']*')*>/gi;
/** What is left of a link that is not closed. */
const OPEN_LINK = /<link\b/gi;

export function previewDocument({ kind, text }: PreviewSource): string {
  const safe = text.replace(LINK, '').replace(OPEN_LINK, '<x-link');
  if (kind === 'html') return safe;
  const svg = safe.replace(/^\s*<\?xml[^>]*>/, '');
  const style =
    'body{display:grid;margin:0;min-height:100vh;place-items:center}svg{max-width:100%}';
  return `<!doctype html><meta charset="utf-8"><style>${style}</style>${svg}`;
}
