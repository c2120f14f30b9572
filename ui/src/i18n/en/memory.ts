/** Memory: the notes that the user keeps. */
export const memory = {
  about:
    'Notes that you want every chat to know. They are part of the prompt, and the context shows what they take. Inglenook never notes anything by itself.',
  use: 'Use notes in chats',
  note: 'Note',
  hint: 'For example: I use metric units.',
  none: 'No notes yet. Write one, or choose “Remember…” in the menu of a message.',
  takes: {
    one: 'The notes take {tokens} token of the context. Show them as the model gets them',
    other: 'The notes take {tokens} tokens of the context. Show them as the model gets them',
  },
  remember: 'Remember…',
  remember_about: 'Shorten this to what other chats should know. Only what you save here is kept.',
  saved: 'Saved in memory.',
  removed: 'Note deleted.',
  edit: 'Edit note',
  from: 'from “{title}”',
  in_prompt: 'Notes in this prompt',
  choice_default: 'As in the settings',
  choice_on: 'On',
  choice_off: 'Off',
} as const;
