/** Prompts offered by the enabled tool servers. */
import type { Backend } from '../../backend/backend';
import type { ToolServerInfo } from '../../backend/bindings';
import type { OfferedPrompt } from './match-prompts';

export class PromptsState {
  list = $state.raw<readonly OfferedPrompt[]>([]);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Loads the prompts of each server. A failing server counts as having none; its row shows the error. */
  async load(servers: readonly Pick<ToolServerInfo, 'id' | 'name'>[]): Promise<void> {
    const question = ++this.#question;
    const asked = servers.map(async ({ id, name }): Promise<OfferedPrompt[]> => {
      const prompts = await this.#backend.call('tool_prompts', { id }).catch(() => []);
      return prompts.map((prompt) => ({ server: id, serverName: name, prompt }));
    });
    const lists = await Promise.all(asked);
    if (question === this.#question) this.list = lists.flat();
  }

  async text(
    { server, prompt }: OfferedPrompt,
    given: Readonly<Record<string, string>>,
  ): Promise<string> {
    const entries = Object.entries(given).filter(([, value]) => value !== '');
    const args = { id: server, name: prompt.name, arguments: Object.fromEntries(entries) };
    return (await this.#backend.call('tool_prompt', args)).text;
  }
}
