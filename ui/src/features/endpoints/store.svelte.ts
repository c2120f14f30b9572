/** Remote endpoints, mirrored from the application, and the log of connections. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type {
  ConnectionInfo,
  EndpointAddArgs,
  EndpointInfo,
  EndpointUpdateArgs,
  ErrorInfo,
} from '../../backend/bindings';

/** Number of connections to load, newest first. */
const SHOWN = 200;

export class EndpointsState {
  list = $state.raw<readonly EndpointInfo[]>([]);
  connections = $state.raw<readonly ConnectionInfo[]>([]);
  error = $state.raw<ErrorInfo | null>(null);
  /** Ids of endpoints being tested; `new` for the one being added. */
  busy = $state.raw<readonly string[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('endpoint_list', {});
  }

  async loadConnections(): Promise<void> {
    this.connections = await this.#backend.call('connections_list', { limit: SHOWN });
  }

  /** Returns false on failure; see `error`. */
  add(args: EndpointAddArgs): Promise<boolean> {
    return this.#work('new', () => this.#backend.call('endpoint_add', args));
  }

  /** Tests whether the endpoint answers and lists its models. */
  test(id: string): Promise<boolean> {
    return this.#work(id, () => this.#backend.call('endpoint_test', { id }));
  }

  update(args: EndpointUpdateArgs): Promise<boolean> {
    return this.#work(args.id, () => this.#backend.call('endpoint_update', args));
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('endpoint_remove', { id });
    this.list = this.list.filter((it) => it.id !== id);
  }

  async #work(id: string, work: () => Promise<EndpointInfo>): Promise<boolean> {
    this.busy = [...this.busy, id];
    this.error = null;
    try {
      this.#put(await work());
      return true;
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      return false;
    } finally {
      this.busy = this.busy.filter((it) => it !== id);
    }
  }

  #put(endpoint: EndpointInfo): void {
    const at = this.list.findIndex((it) => it.id === endpoint.id);
    this.list = at < 0 ? [...this.list, endpoint] : this.list.with(at, endpoint);
  }
}
