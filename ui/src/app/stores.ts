/** The stores that need nothing but the backend. None of them knows another. */
import type { Backend } from '../backend/backend';
import { AttachmentsState } from '../features/attachments/store.svelte';
import { ContextUsage } from '../features/chat/context-usage.svelte';
import { DraftScanState } from '../features/chat/draft-scan.svelte';
import { DraftCountState } from '../features/chat/draft-tokens.svelte';
import { ReadAloud } from '../features/chat/read-aloud.svelte';
import { Drafts } from '../features/chat/drafts.svelte';
import { FoldersState } from '../features/conversations/folders.svelte';
import { SearchState } from '../features/conversations/search.svelte';
import { Selection } from '../features/conversations/selection.svelte';
import { ConversationsState } from '../features/conversations/store.svelte';
import { DownloadsState } from '../features/downloads/store.svelte';
import { EndpointsState } from '../features/endpoints/store.svelte';
import { HelpState } from '../features/help/store.svelte';
import { HubState } from '../features/models/hub.svelte';
import { LibraryState } from '../features/models/library.svelte';
import { MemoryState } from '../features/memory/store.svelte';
import { ModelsState } from '../features/models/store.svelte';
import { PresetsState } from '../features/options/presets.svelte';
import { ProjectsState } from '../features/projects/store.svelte';
import { ProfileState } from '../features/performance/profile.svelte';
import { PerformanceState } from '../features/performance/store.svelte';
import { LocalServerState } from '../features/server/store.svelte';
import { SettingsState } from '../features/settings/store.svelte';
import { UpdatesState } from '../features/settings/updates.svelte';
import { TokenInspectorState } from '../features/tokens/store.svelte';
import { ToolFormsState } from '../features/tools/forms.svelte';
import { PromptsState } from '../features/tools/prompts.svelte';
import { ToolsState } from '../features/tools/store.svelte';
import { TrashState } from '../features/trash/store.svelte';
import { TunesState } from '../features/tunes/store.svelte';
import { Toasts } from '../shared/toasts.svelte';
import { QuickKeys } from './quick-keys.svelte';
import { UiState } from './ui-state.svelte';

/** Sets the backend before the fields of a subclass are initialized. */
class BackendOwner {
  readonly backend: Backend;

  constructor(backend: Backend) {
    this.backend = backend;
  }
}

export class Stores extends BackendOwner {
  readonly conversations = new ConversationsState(this.backend);
  readonly contextUsage = new ContextUsage(this.backend);
  readonly draftCount = new DraftCountState(this.backend);
  readonly downloads = new DownloadsState(this.backend);
  readonly endpoints = new EndpointsState(this.backend);
  readonly folders = new FoldersState(this.backend);
  readonly help = new HelpState(this.backend);
  readonly hub = new HubState(this.backend);
  readonly performance = new PerformanceState(this.backend);
  readonly tokenInspector = new TokenInspectorState(this.backend);
  readonly library = new LibraryState(this.backend);
  readonly memory = new MemoryState(this.backend);
  readonly models = new ModelsState(this.backend);
  readonly draftScan = new DraftScanState(this.backend);
  readonly server = new LocalServerState(this.backend);
  readonly presets = new PresetsState(this.backend);
  readonly projects = new ProjectsState(this.backend);
  readonly prompts = new PromptsState(this.backend);
  readonly profile = new ProfileState(this.backend);
  readonly search = new SearchState(this.backend);
  /** A second search, for the command palette. */
  readonly paletteSearch = new SearchState(this.backend);
  readonly settings = new SettingsState(this.backend);
  readonly toolForms = new ToolFormsState(this.backend);
  readonly tools = new ToolsState(this.backend);
  readonly tunes = new TunesState(this.backend);
  readonly trash = new TrashState(this.backend);
  readonly updates = new UpdatesState(this.backend);
  readonly attachments = new AttachmentsState(this.backend);
  readonly quickKeys = new QuickKeys(this.backend);
  readonly drafts = new Drafts();
  readonly readAloud = new ReadAloud();
  readonly selection = new Selection();
  readonly toasts = new Toasts();
  readonly ui = new UiState();
}
