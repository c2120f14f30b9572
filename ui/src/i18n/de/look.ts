/** The settings of how the window looks and begins, of texts that the user writes once, and of its server. */
import type { Catalogue } from '../types';

export const look: Catalogue['settings'] = {
  start_with: {
    label: 'Beim Start öffnen',
    help: 'Was das Fenster zeigt, wenn es sich öffnet.',
    options: { new: 'Neuer Chat', last: 'Zuletzt offener Chat' },
  },
  accent: {
    label: 'Akzentfarbe',
    help: 'Farbe von Schaltflächen, Links und Ausgewähltem.',
    options: {
      ember: 'Glut',
      blue: 'Blau',
      green: 'Grün',
      violet: 'Violett',
      rose: 'Rosé',
      gray: 'Grau',
    },
  },
  text_size: {
    label: 'Textgröße',
    help: 'Größe aller Texte. Die anderen Teile des Fensters behalten ihre Größe.',
    options: { small: 'Klein', normal: 'Normal', large: 'Groß', larger: 'Sehr groß' },
  },
  code_wrap: {
    label: 'Zeilen im Code umbrechen',
    help: 'Bricht lange Zeilen in Codeblöcken um, statt zu scrollen. Auch jeder Block hat dafür eine Schaltfläche.',
  },
  instructions: {
    label: 'Standardanweisungen',
    help: 'System-Prompt neuer Chats. Ein Chat oder eine Vorlage mit eigenen Anweisungen nutzt stattdessen diese.',
    placeholder: 'Zum Beispiel: Antworte kurz.',
  },
  prompts: {
    label: 'Eigene Prompts',
    help: 'Texte, die das Nachrichtenfeld einfügt: Gib / und einen Namen ein.',
  },
  server_port: {
    label: 'Port',
    help: 'Unter diesem Port dieses Computers erreichen Programme den Server.',
  },
  server_devices: {
    label: 'Andere Geräte zulassen',
    help: 'Telefone und Computer in deinem Netzwerk können sich mit dem Schlüssel verbinden. Die Verbindung ist nicht verschlüsselt (HTTP): Nur in vertrauenswürdigen Netzwerken einschalten.',
  },
  server_start: {
    label: 'Mit dem Fenster starten',
    help: 'Startet den Server immer, wenn sich das Fenster öffnet.',
  },
};
