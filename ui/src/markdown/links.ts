/** Links in model output: which addresses are allowed, and how they are displayed. */

const PROTOCOLS = new Set(['http:', 'https:', 'mailto:']);

/** Returns the normalized address, or null if it may not be opened. */
export function safeUrl(href: string): string | null {
  let url: URL;
  try {
    url = new URL(href.trim());
  } catch {
    return null;
  }
  return PROTOCOLS.has(url.protocol) ? url.href : null;
}

/** Returns what identifies the target: the host, or the mailbox. */
export function hostOf(url: string): string {
  const it = new URL(url);
  return it.protocol === 'mailto:' ? it.pathname : it.host;
}

/** Whether a link's text names the host it leads to, as its host and not as a part of another address. */
export function namesHost(text: string, host: string): boolean {
  if (text === host) return true;
  const at = text.toLowerCase().indexOf(host);
  if (at < 0 || host === '') return false;
  return (
    /(?:^|:\/\/|[\s(])$/.test(text.slice(0, at)) &&
    /^(?:[/?#:\s),;!]|$)/.test(text.slice(at + host.length))
  );
}
