import type { Messages } from '../types';

export const quick: Messages['quick'] = {
  open_in_main: 'Im Hauptfenster öffnen',
  on_this_computer: 'auf diesem Computer',
  no_model: 'Kein Modell gewählt',
  keys_note:
    'Öffnet ein kleines Fenster über allen anderen, auch wenn Inglenook im Infobereich verborgen ist. Aus, bis du Tasten festlegst. Unter Wayland gibt der Desktop Programmen von sich aus keine Tasten: Weise in seinen Tastatureinstellungen dem Befehl „inglenook inglenook://quick“ Tasten zu.',
};
