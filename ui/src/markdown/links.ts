/** Addresses that a model wrote: which may be offered to the user, and how they are named. */

const PROTOCOLS = new Set(['http:', 'https:', 'mailto:']);

/** The address in its normal form, or null where it isn't one that may be opened. */
export function safeUrl(href: string): string | null {
  let url: URL;
  try {
    url = new URL(href.trim());
  } catch {
    return null;
  }
  return PROTOCOLS.has(url.protocol) ? url.href : null;
}

/** What the user must know before following: the host, or the mailbox. */
export function hostOf(url: string): string {
  const it = new URL(url);
  return it.protocol === 'mailto:' ? it.pathname : it.host;
}
