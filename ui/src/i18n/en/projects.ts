/** Projects: folders that give new chats something to begin with. */
export const projects = {
  of: 'Project “{name}”',
  about:
    'New chats in this folder begin with what you enter here. Chats that already exist stay as they are.',
  instructions: 'Instructions',
  instructions_note:
    'The system prompt of new chats. Empty: that of the preset, or the default instructions.',
  preset: 'Preset',
  model: 'Model',
  model_default: 'Default model',
  files: 'Files',
  files_note:
    'They go with the first message of each new chat: whole if they fit, otherwise the passages that match each question. Their search index is kept.',
  n_files: { one: '{n} file', other: '{n} files' },
  add: 'Add files',
  remove: 'Remove project',
  remove_folder: 'Remove the folder “{name}” and its project?',
  remove_folder_about:
    'The project’s instructions and files are deleted. The chats stay, with the files that they were given.',
  make: 'Make this a project…',
  open: 'Project settings…',
  new_chat: 'New chat here',
  begins_in: 'New chat in “{name}”',
  given: 'from the project',
} as const;
