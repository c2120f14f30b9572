/** The user guide. */
export const help = {
  title: 'Help',
  search: 'Ask or search',
  contents: 'All articles',
  results: 'Results',
  related: 'See also',
  open: 'Open “{name}”',
  source: 'From the guide: {name}',
  maybe: 'Maybe you mean: {name}',
  more: 'Learn more',
  show_models: 'Show models',
} as const;
