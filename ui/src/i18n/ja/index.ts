/**
 * Japanese. です・ます, short. チャット, モデル, 回答 (answer), メッセージ, コンテキスト, トークン, プロンプト, プリセット,
 * バージョン, 分岐 (branch), フォルダー, ごみ箱 (trash), 設定, パフォーマンス, 要約 (summary), 再生成 (regenerate).
 */
import type { Catalogue } from '../types';
import { chat } from './chat';
import { commands } from './commands';
import { common } from './common';
import { errors } from './errors';
import { files } from './files';
import { format } from './format';
import { help } from './help';
import { imports } from './imports';
import { instruments } from './instruments';
import { look } from './look';
import { machine } from './machine';
import { memory } from './memory';
import { models } from './models';
import { rows } from './rows';
import { preview } from './preview';
import { projects } from './projects';
import { quick } from './quick';
import { samplers } from './samplers';
import { servers } from './servers';
import { serving } from './serving';
import { settings } from './settings';
import { shell } from './shell';
import { sidebar } from './sidebar';
import { synonyms } from './synonyms';
import { tools } from './tools';
import { tunes } from './tunes';
import { turn } from './turn';
import { updates } from './updates';
import { welcome } from './welcome';

export const catalogue: Catalogue = {
  messages: {
    chat,
    commands,
    common,
    files,
    format,
    help,
    imports,
    instruments,
    memory,
    models,
    preview,
    projects,
    quick,
    samplers,
    servers,
    serving,
    settings,
    shell,
    sidebar,
    synonyms,
    tools,
    tunes,
    turn,
    updates,
    welcome,
  },
  settings: { ...rows, ...look, ...machine },
  errors,
};
