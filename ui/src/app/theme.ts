/** Applies theme, accent and text size. Also kept in local storage, so that the first paint is right. */

/** What decides how the page looks; each value is one of its setting's choices. */
export interface Look {
  readonly theme: string;
  readonly accent: string;
  readonly textSize: string;
}

/** By field: where it is kept, its attribute of the root element, and the value that needs none. */
const FIELDS = {
  theme: { key: 'inglenook.theme', attribute: 'data-theme', standard: 'system' },
  accent: { key: 'inglenook.accent', attribute: 'data-accent', standard: 'ember' },
  textSize: { key: 'inglenook.text-size', attribute: 'data-text-size', standard: 'normal' },
} as const;

const stored = (field: keyof Look): string =>
  localStorage.getItem(FIELDS[field].key) ?? FIELDS[field].standard;

export const storedLook = (): Look => ({
  theme: stored('theme'),
  accent: stored('accent'),
  textSize: stored('textSize'),
});

export function applyLook(look: Look): void {
  const root = document.documentElement;
  for (const [field, { key, attribute, standard }] of Object.entries(FIELDS)) {
    const value = look[field as keyof Look];
    localStorage.setItem(key, value);
    if (value === standard) root.removeAttribute(attribute);
    else root.setAttribute(attribute, value);
  }
}
