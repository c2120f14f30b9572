import type { Messages } from '../types';

export const updates: Messages['updates'] = {
  title: 'Updates',
  check: 'Jetzt suchen',
  checking: 'Es wird nach Updates gesucht …',
  installing: 'Die neue Version wird installiert …',
  available: 'Version {version} ist verfügbar.',
  published: 'Veröffentlicht am {date}.',
  current: 'Das ist die neueste Version.',
  at_start: 'Inglenook sucht bei jedem Start nach Updates.',
  off: 'Inglenook sucht nur nach Updates, wenn du die Schaltfläche drückst.',
  what_is_sent: 'Die Suche fordert eine Datei von {hosts} an. Sonst wird nichts gesendet.',
  no_address: 'Dieser Build hat keine Update-Adresse. Er sucht nie nach Updates.',
  how_app_image:
    'Lade das neue AppImage dort herunter, wo du dieses herhast, und ersetze damit die alte Datei.',
  how_deb:
    'Lade das neue .deb-Paket dort herunter, wo du dieses herhast, und installiere es mit apt install ./DATEI.deb.',
  how_rpm:
    'Lade das neue .rpm-Paket dort herunter, wo du dieses herhast, und installiere es mit dnf install ./DATEI.rpm.',
  how_flatpak: 'Aktualisiere Inglenook in der Softwareverwaltung oder mit flatpak update.',
  how_mac_app:
    'Lade das neue Disk-Image dort herunter, wo du dieses herhast, und bewege Inglenook in den Ordner „Programme“.',
  how_nsis:
    'Lade das neue Installationsprogramm dort herunter, wo du dieses herhast, und führe es aus.',
  how_msi:
    'Lade das neue Installationsprogramm dort herunter, wo du dieses herhast, und führe es aus.',
  how_source: 'Hol den neueren Quelltext und baue ihn noch einmal.',
  downloading: 'Die neue Version wird heruntergeladen',
  download: 'Herunterladen',
  restart: 'Zum Aktualisieren neu starten',
  page: 'Bezugsquelle',
  automatic: 'Automatisch suchen …',
  checked: 'Zuletzt gesucht: {when}',
  show: 'Anzeigen',
};
