/** What the built-in guide is asked first. It knows English alone, so these are not translated: they are what is sent. */
export const guide = {
  language: 'en',
  questions: [
    'What can you do?',
    'How do I add a model?',
    'Is my data private?',
    'Which shortcuts are there?',
  ],
} as const;
