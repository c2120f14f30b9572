/** The user guide. */
export const help = {
  title: 'Help',
  search: 'Ask or search',
  contents: 'All articles',
  results: 'Results',
  related: 'See also',
  open: 'Open “{name}”',
} as const;
