/** Projects: the one that a new chat begins in, and the one that is being edited. The application keeps them. */
import type { Backend } from '../../backend/backend';
import type { Project, ProjectArgs } from '../../backend/bindings';
import { asBase64 } from '../../shared/base64';

export class ProjectsState {
  /** The folder that the chat without messages will lie in; null: none. */
  folder = $state<string | null>(null);
  /** What that chat begins with; null: its folder is no project, or it is still loading. */
  starting = $state.raw<Project | null>(null);
  /** What the chat begins with is not known yet. */
  loading = $state(false);
  /** The folder whose project is being edited; null: none. */
  editing = $state<string | null>(null);
  /** What is stored of it; null: nothing yet. */
  edited = $state.raw<Project | null>(null);
  /** Name of a file that is being read. */
  reading = $state<string | null>(null);
  /** The folder that is about to be removed with its project; null: none. */
  removing = $state<string | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Begins a chat in a folder, or in none. Returns what its project says; null if another chat was begun meanwhile. */
  async start(folder: string | null): Promise<Project | null> {
    this.folder = folder;
    this.starting = null;
    this.loading = folder !== null;
    if (folder === null) return null;
    const isStill = () => this.folder === folder;
    try {
      const project = await this.#backend.call('project_get', { id: folder });
      if (isStill()) this.starting = project;
      return this.starting;
    } finally {
      if (isStill()) this.loading = false;
    }
  }

  /** Opens the project of a folder for editing. A project around it is another one. */
  async edit(folder: string): Promise<void> {
    const project = await this.#backend.call('project_get', { id: folder });
    this.edited = project?.folder === folder ? project : null;
    this.editing = folder;
  }

  close(): void {
    this.editing = null;
    this.edited = null;
  }

  /** Makes the folder a project, or changes what its project says. */
  async save(args: ProjectArgs): Promise<Project> {
    return this.#took(await this.#backend.call('project_set', args));
  }

  /** Removes the project. The folder and its chats stay. */
  async remove(folder: string): Promise<void> {
    await this.#backend.call('project_remove', { id: folder });
    if (this.editing === folder) this.edited = null;
    if (this.starting?.folder === folder) this.starting = null;
  }

  /** Adds a file from the page. */
  addFile(folder: string, file: File): Promise<void> {
    return this.#read(file.name, async () => {
      const base64 = await asBase64(file);
      return this.#backend.call('project_file_add', { folder, name: file.name, base64 });
    });
  }

  /** Adds a file by its path on this computer. */
  addPath(folder: string, path: string): Promise<void> {
    return this.#read(path.split(/[/\\]/).at(-1) ?? path, () =>
      this.#backend.call('project_file_add_path', { folder, path }),
    );
  }

  async removeFile(id: string): Promise<void> {
    this.#took(await this.#backend.call('project_file_remove', { id }));
  }

  async #read(name: string, work: () => Promise<Project>): Promise<void> {
    this.reading = name;
    try {
      this.#took(await work());
    } finally {
      this.reading = null;
    }
  }

  #took(project: Project): Project {
    if (this.editing === project.folder) this.edited = project;
    if (this.starting?.folder === project.folder) this.starting = project;
    return project;
  }
}
