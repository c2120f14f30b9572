import type { Messages } from '../types';

export const serving: Messages['serving'] = {
  start: 'Server starten',
  stop: 'Server beenden',
  restart: 'Server neu starten',
  stale: 'Die Einstellungen wurden seit dem Start des Servers geändert.',
  key: 'Schlüssel',
  show: 'Anzeigen',
  hide: 'Verbergen',
  renew: 'Neuer Schlüssel…',
  renew_warning:
    'Der alte Schlüssel gilt sofort nicht mehr. Programme und Geräte brauchen den neuen.',
  qr_label: 'QR-Code mit Adresse und Schlüssel für ein anderes Gerät',
  devices_reached:
    'Scanne den Code mit einem Telefon im selben Netzwerk, oder öffne {url} und gib den Schlüssel ein.',
  devices_warning:
    'Wer diesen Code hat, kann deine Chats lesen und schreiben. Die Verbindung ist nicht verschlüsselt.',
  devices_none: 'Dieser Computer ist mit keinem Netzwerk verbunden.',
  requests: 'Neueste Anfragen',
  requests_none: 'Noch keine Anfragen.',
  requests_open: 'läuft',
};
