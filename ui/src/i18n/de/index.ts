/**
 * German. Says "du". Chat, Modell, Antwort, Nachricht, Kontext, das Token (plural: Token), Prompt, Vorlage (preset),
 * Version, Tool, Seitenleiste, Ordner, Papierkorb, Festplatte, API-Schlüssel, Zusammenfassung, neu generieren.
 */
import type { Catalogue } from '../types';
import { chat } from './chat';
import { commands } from './commands';
import { common } from './common';
import { errors } from './errors';
import { files } from './files';
import { format } from './format';
import { help } from './help';
import { instruments } from './instruments';
import { machine } from './machine';
import { models } from './models';
import { rows } from './rows';
import { servers } from './servers';
import { settings } from './settings';
import { shell } from './shell';
import { sidebar } from './sidebar';
import { tools } from './tools';
import { turn } from './turn';
import { welcome } from './welcome';

export const catalogue: Catalogue = {
  messages: {
    chat,
    commands,
    common,
    files,
    format,
    help,
    instruments,
    models,
    servers,
    settings,
    shell,
    sidebar,
    tools,
    turn,
    welcome,
  },
  settings: { ...rows, ...machine },
  errors,
};
