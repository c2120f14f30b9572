/** The user guide: its articles in the language of the window, and the search in them. */
import type { Backend } from '../../backend/backend';
import type { HelpArticle, HelpTopic } from '../../backend/bindings';
import { i18n } from '../../i18n';

/** Waits for the next letter before it searches. */
const SEARCH_DELAY_MS = 120;

export class HelpState {
  topics = $state.raw<readonly HelpTopic[]>([]);
  query = $state('');
  /** Articles that are like the query, best first; null without a query. */
  found = $state.raw<readonly HelpArticle[] | null>(null);
  /** The open article; null: the table of contents or the search results. */
  open = $state<string | null>(null);

  readonly articles = $derived(this.topics.flatMap((topic) => topic.articles));
  readonly article = $derived(this.articles.find((it) => it.id === this.open) ?? null);

  readonly #backend: Backend;
  #language = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Loads the articles, again after the language changed. */
  async load(): Promise<void> {
    const { language } = i18n;
    if (language === this.#language) return;
    this.topics = await this.#backend.call('help_topics', { language });
    this.#language = language;
  }

  setQuery(query: string): void {
    this.query = query;
    this.open = null;
    clearTimeout(this.#timer);
    if (query.trim() === '') this.found = null;
    else this.#timer = setTimeout(() => void this.#search(query), SEARCH_DELAY_MS);
  }

  show(id: string): void {
    this.open = id;
  }

  find(id: string): HelpArticle | undefined {
    return this.articles.find((it) => it.id === id);
  }

  /** The article that explains an error code; the longest matching code wins. */
  ofError(code: string): HelpArticle | undefined {
    const matches = (it: string) => it === code || (/[._]$/.test(it) && code.startsWith(it));
    const longest = (it: HelpArticle) =>
      Math.max(0, ...it.errors.filter(matches).map((match) => match.length));
    return this.articles
      .filter((it) => longest(it) > 0)
      .reduce<HelpArticle | undefined>(
        (best, it) => (best && longest(best) >= longest(it) ? best : it),
        undefined,
      );
  }

  /** The article about a setting: one that opens it, else one that names it. */
  ofSetting(key: string): HelpArticle | undefined {
    const opens = (it: HelpArticle) =>
      it.targets.some((target) => target.kind === 'setting' && target.key === key);
    return this.articles.find(opens) ?? this.articles.find((it) => it.settings.includes(key));
  }

  async #search(question: string): Promise<void> {
    const { language } = i18n;
    const ids = await this.#backend.call('help_search', { language, question });
    // An earlier search must not replace a later one.
    if (question !== this.query) return;
    this.found = ids.flatMap((id) => this.find(id) ?? []);
  }
}
