// Tools and plugins of the stand-in: nothing is started.

const tool = (name, description, more = {}) => ({ name, title: name, description, enabled: true, allowed: false, read_only: false, ...more });
const server = (id, name, place, state, more = {}) => ({ id, name, place, spec: {}, enabled: true, state, tools: [], allowed: false, leaves_machine: false, plugin: null, ...more });
const error = (code, message, remedy) => ({ code, message, remedy });

const SERVERS = [
  server('t1', 'files', 'npx -y @modelcontextprotocol/server-filesystem /home/ada/notes', { state: 'ready' }, {
    tools: [
      tool('read_file', 'Reads a file as text. Give its path within the folders that are allowed.', { read_only: true, allowed: true }),
      tool('write_file', 'Writes a file anew, or over what was there. What was there before is gone: ask for a copy first if it may be wanted again, since neither this server nor the folder that it looks after keeps older versions.'),
      tool('search_files', 'Finds files by a pattern.', { read_only: true, enabled: false }),
    ],
  }),
  server('t2', 'Weather', 'https://weather.example.org/mcp', { state: 'failed', error: error('tool.unreachable', 'weather.example.org doesn’t answer.', 'Look whether the address is right, then test it again.') }, { leaves_machine: true }),
  server('t3', 'clock', 'uvx mcp-server-time --local-timezone Europe/Berlin', { state: 'idle' }, { plugin: 'fireside', tools: [tool('get_current_time', 'Tells what time it is.', { read_only: true })] }),
  server('t4', 'database', 'python3 -m sqlite_tools /home/ada/wood.db', { state: 'idle' }, { enabled: false }),
];

const plugin = (folder, name, more = {}) => ({ folder, name, version: '1.2.0', description: '', servers: [], presets: [], templates: [], models: [], enabled: false, changed: false, error: null, ...more });
const PLUGINS = [
  plugin('fireside', 'Fireside', { enabled: true, description: 'Presets for long evenings, and a clock.', servers: ['clock: uvx mcp-server-time --local-timezone Europe/Berlin'], presets: ['Storyteller', 'Patient teacher'] }),
  plugin('recipes', 'Recipes', { description: 'A template for models that were trained on recipes.', templates: ['recipes-chat'], models: ['kitchen-3b'], changed: true }),
  plugin('broken', 'broken', { version: '', error: error('plugin.manifest', 'plugin.toml of "broken" has no name.', 'Add name = "…" to it.') }),
];

const argument = (name, description, required = false) => ({ name, title: name, description, required });
const PROMPTS = {
  t1: [
    { name: 'summarise', title: 'Summarise a note', description: 'What a note says, in a few sentences.', arguments: [argument('path', 'Within the folders that are allowed.', true), argument('sentences', 'Three, if nothing is said.')] },
    { name: 'tidy', title: 'Tidy my notes', description: 'Looks for notes that say the same and for links that lead nowhere.', arguments: [] },
  ],
  t3: [{ name: 'plan_day', title: 'Plan the day', description: '', arguments: [] }],
};

export function toolCalls(publish) {
  let servers = [...SERVERS];
  let plugins = [...PLUGINS];
  const put = (it) => { servers = servers.map((old) => (old.id === it.id ? it : old)); publish({ type: 'tool_server_changed', server: it }); return it; };
  const get = (id) => servers.find((it) => it.id === id);
  const add = (name, spec) => {
    const it = server(`t${Date.now()}`, name, spec.url ?? [spec.command, ...(spec.args ?? [])].join(' '), { state: 'ready' });
    servers = [...servers, it];
    return it;
  };
  return {
    tool_forms: () => [],
    tool_servers_list: () => servers,
    tool_server_add: (a) => add(a.name, a.spec),
    tool_servers_import: (a) => ({ added: Object.entries(JSON.parse(a.text).mcpServers).map(([name, spec]) => add(name, spec)), refused: [] }),
    tool_server_test: (a) => get(a.id),
    tool_server_update: (a) => put({ ...get(a.id), ...a }),
    tool_server_remove: (a) => { servers = servers.filter((it) => it.id !== a.id); publish({ type: 'tool_server_removed', id: a.id }); return null; },
    tool_permit: (a) => {
      const it = get(a.id);
      if (a.tool === undefined || a.tool === null) return put({ ...it, allowed: a.allowed });
      return put({ ...it, tools: it.tools.map((one) => (one.name === a.tool ? { ...one, enabled: a.enabled ?? one.enabled, allowed: a.allowed ?? one.allowed } : one)) });
    },
    tool_prompts: (a) => PROMPTS[a.id] ?? [],
    tool_prompt: (a) => ({ text: `${a.name}: ${Object.values(a.arguments).join(', ')}` }),
    plugins_list: () => plugins,
    plugin_switch: (a) => { plugins = plugins.map((it) => (it.folder === a.name ? { ...it, enabled: a.enabled, changed: false } : it)); return plugins; },
  };
}
