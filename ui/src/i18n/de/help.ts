import type { Messages } from '../types';

export const help: Messages['help'] = {
  title: 'Hilfe',
  search: 'Fragen oder suchen',
  contents: 'Alle Artikel',
  results: 'Ergebnisse',
  related: 'Siehe auch',
  open: '„{name}“ öffnen',
};
