/** First questions for the built-in guide. It knows only English, and they are sent as they are, so they are not translated. */
export const guide = {
  language: 'en',
  questions: [
    'What can you do?',
    'How do I add a model?',
    'Is my data private?',
    'Which shortcuts are there?',
  ],
} as const;
