/** English: the source of all the others. */
import { chat } from './chat';
import { commands } from './commands';
import { common } from './common';
import { files } from './files';
import { format } from './format';
import { help } from './help';
import { instruments } from './instruments';
import { models } from './models';
import { servers } from './servers';
import { settings } from './settings';
import { shell } from './shell';
import { sidebar } from './sidebar';
import { tools } from './tools';
import { turn } from './turn';
import { welcome } from './welcome';

export const en = {
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
};
