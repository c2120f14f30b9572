/** Tool servers and plugins, mirrored from the application. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type {
  AppEvent,
  ErrorInfo,
  PluginInfo,
  ToolPermitArgs,
  ToolServerInfo,
  ToolServerSpec,
  ToolServersImported,
  ToolServerUpdateArgs,
} from '../../backend/bindings';

export class ToolsState {
  list = $state.raw<readonly ToolServerInfo[]>([]);
  plugins = $state.raw<readonly PluginInfo[]>([]);
  error = $state.raw<ErrorInfo | null>(null);
  /** Ids of servers being started or tested; `new` for those being added. */
  busy = $state.raw<readonly string[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('tool_servers_list', {});
  }

  async loadPlugins(): Promise<void> {
    this.plugins = await this.#backend.call('plugins_list', {});
  }

  apply(event: AppEvent): void {
    if (event.type === 'tool_server_changed') this.#put(event.server);
    if (event.type === 'tool_server_removed') {
      this.list = this.list.filter((it) => it.id !== event.id);
    }
  }

  /** Returns false on failure; see `error`. */
  add(name: string, spec: ToolServerSpec): Promise<boolean> {
    return this.#work('new', () => this.#backend.call('tool_server_add', { name, spec }));
  }

  /** Returns null on failure; see `error`. */
  async import(text: string): Promise<ToolServersImported | null> {
    let imported: ToolServersImported | null = null;
    await this.#try('new', async () => {
      imported = await this.#backend.call('tool_servers_import', { text });
      imported.added.forEach((it) => this.#put(it));
      this.error = imported.refused[0] ?? null;
    });
    return imported;
  }

  test(id: string): Promise<boolean> {
    return this.#work(id, () => this.#backend.call('tool_server_test', { id }));
  }

  /** Begins a sign-in. Returns the address for the browser; null on failure, which the server's state names. */
  async signIn(id: string, client_id: string | null): Promise<string | null> {
    let address: string | null = null;
    await this.#try(id, async () => {
      address = (await this.#backend.call('tool_sign_in', { id, client_id })).address;
    });
    // The row shows it already.
    if (this.error?.code.startsWith('tools.sign_in')) this.error = null;
    return address;
  }

  async cancelSignIn(id: string): Promise<void> {
    await this.#backend.call('tool_sign_in_cancel', { id });
  }

  signOut(id: string): Promise<boolean> {
    return this.#work(id, () => this.#backend.call('tool_sign_out', { id }));
  }

  update(args: ToolServerUpdateArgs): Promise<boolean> {
    return this.#work(args.id, () => this.#backend.call('tool_server_update', args));
  }

  async permit(args: ToolPermitArgs): Promise<void> {
    this.#put(await this.#backend.call('tool_permit', args));
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('tool_server_remove', { id });
    this.list = this.list.filter((it) => it.id !== id);
  }

  async restore(id: string): Promise<void> {
    this.#put(await this.#backend.call('tool_server_restore', { id }));
  }

  async switchPlugin(name: string, enabled: boolean): Promise<void> {
    await this.#try(name, async () => {
      this.plugins = await this.#backend.call('plugin_switch', { name, enabled });
      await this.load();
    });
  }

  #work(id: string, work: () => Promise<ToolServerInfo>): Promise<boolean> {
    return this.#try(id, async () => this.#put(await work()));
  }

  async #try(id: string, work: () => Promise<void>): Promise<boolean> {
    this.busy = [...this.busy, id];
    this.error = null;
    try {
      await work();
      return true;
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      return false;
    } finally {
      this.busy = this.busy.filter((it) => it !== id);
    }
  }

  #put(server: ToolServerInfo): void {
    const at = this.list.findIndex((it) => it.id === server.id);
    this.list = at < 0 ? [...this.list, server] : this.list.with(at, server);
  }
}
