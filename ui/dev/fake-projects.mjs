// Folders and projects of the stand-in.
import { NO_OPTIONS } from './fake-data.mjs';

const folders = [{ id: 'f1', name: 'House', parent: null, is_project: true }, { id: 'f2', name: 'Kitchen', parent: 'f1', is_project: false }];
const files = [
  { id: 'pf1', name: 'stoves.md', kind: 'markdown', bytes: 5120, findings: [] },
  { id: 'pf2', name: 'chimney sweep.pdf', kind: 'pdf', bytes: 90_000, findings: [], scanned: { images: 11, left_out: 0, is_all: false } },
];
const texts = new Map();
const projects = new Map([['f1', { instructions: 'Answer as a chimney sweep would.', preset: 'p1', model: null, memory: null, files }]]);
const find = (id) => folders.find((it) => it.id === id);

/** A file of a project, with its text. */
export function projectFile(id) {
  const info = [...projects.values()].flatMap((it) => it.files).find((it) => it.id === id);
  return { info, text: texts.get(id) ?? `The text of ${info.name}.` };
}

/** The project of a folder, or of the nearest folder around it. */
export function projectOf(id) {
  for (let folder = find(id); folder; folder = find(folder.parent)) {
    const it = projects.get(folder.id);
    if (!it) continue;
    const options = { ...NO_OPTIONS, system_prompt: it.instructions || null, preset: it.preset, project: folder.id };
    return { folder: folder.id, name: folder.name, ...it, options, compression: null };
  }
  return null;
}

/** What a draft would cost. A project has room for eight scanned pages. */
export function draftCount({ conversation, folder, text, attachments = [] }) {
  const project = conversation ? null : projectOf(folder);
  const n_scanned = (project?.files ?? []).reduce((n, file) => n + (file.scanned?.images ?? 0), 0);
  const tokens = 40 + Math.ceil(text.length / 4) + (project?.files.length ?? 0) * 120 + attachments.length * 120;
  return {
    tokens, context_limit: 8192, can_think_or_not: true, first_token_ms: tokens * 15,
    ...(n_scanned > 8 && { hidden_pages: { count: n_scanned - 8, reason: 'no_room' } }),
    attachments: attachments.map((id) => ({ id, tokens: 120, tokens_whole: 120, whole: true })),
  };
}

export const folderCalls = (publish, id) => {
  const told = (folder) => { publish({ type: 'folder_changed', folder }); return folder; };
  const mark = (key, is_project) => { const folder = find(key); folder.is_project = is_project; told(folder); };
  return {
    folders_list: () => folders,
    folder_add: (a) => { const folder = { id: id(), name: a.name, parent: a.parent ?? null, is_project: false }; folders.push(folder); return told(folder); },
    folder_rename: (a) => { const folder = find(a.id); folder.name = a.name; return told(folder); },
    folder_move: (a) => { const folder = find(a.id); folder.parent = a.parent; return told(folder); },
    folder_remove: (a) => { folders.splice(folders.indexOf(find(a.id)), 1); projects.delete(a.id); publish({ type: 'folder_removed', id: a.id }); return null; },
    project_get: (a) => projectOf(a.id),
    project_set: (a) => { projects.set(a.folder, { instructions: a.instructions ?? '', preset: a.preset ?? null, model: a.model ?? null, memory: a.memory ?? null, files: projects.get(a.folder)?.files ?? [] }); mark(a.folder, true); return projectOf(a.folder); },
    project_remove: (a) => { projects.delete(a.id); mark(a.id, false); return null; },
    project_file_add: (a) => { const bytes = Buffer.from(a.base64, 'base64'); const key = id(); texts.set(key, bytes.toString()); projects.get(a.folder).files.push({ id: key, name: a.name, kind: 'text', bytes: bytes.length, findings: [] }); return projectOf(a.folder); },
    project_file_remove: (a) => { const [key, it] = [...projects].find(([, project]) => project.files.some((file) => file.id === a.id)); it.files = it.files.filter((file) => file.id !== a.id); return projectOf(key); },
  };
};
