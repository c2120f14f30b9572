/** Applies the theme. Also kept in local storage, so that the first paint is right. */

const KEY = 'inglenook.theme';

export const storedTheme = (): string => localStorage.getItem(KEY) ?? 'system';

export function applyTheme(theme: string): void {
  localStorage.setItem(KEY, theme);
  const root = document.documentElement;
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
  else delete root.dataset.theme;
}
