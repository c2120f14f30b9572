import type { Messages } from '../types';

export const help: Messages['help'] = {
  title: 'Hilfe',
  search: 'Fragen oder suchen',
  contents: 'Alle Artikel',
  results: 'Ergebnisse',
  related: 'Siehe auch',
  open: '„{name}“ öffnen',
  source: 'Aus der Anleitung: {name}',
  maybe: 'Oder meinst du: {name}',
  more: 'Mehr dazu',
  show_models: 'Modelle zeigen',
};
