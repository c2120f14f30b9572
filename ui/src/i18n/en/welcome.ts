/** The first steps. */
export const welcome = {
  first_steps: 'First steps',
  step_of: 'Step {at} of {n}',
  go_on: 'Continue',
  start: 'Start chatting',

  title: 'Welcome to Inglenook',
  text: 'The warm corner by the fire, for talking with language models on your own computer. A small model is built in: you can write to it in a moment.',

  machine: 'This computer',
  machine_text: 'Models run here, on what is built into it.',
  processor: 'Processor',
  cores: { one: '{n} core', other: '{n} cores' },
  runs_on_it: 'Every model runs on it.',
  runs_on_it_with: 'Every model runs on it, with {isa}.',
  memory: 'Memory',
  memory_decides: 'Decides how large a model can be.',
  memory_free: 'A model can have {size} of it now.',
  graphics: 'Graphics card',
  graphics_note: 'Models that fit into its memory answer much sooner.',

  model: 'Your first model',
  model_text:
    'The built-in one answers at once and knows a little. A larger one knows far more, and comes while you talk.',
  answers_first: 'answers first',
  on_its_way: 'On its way',
  have_file: 'I already have a model file:',

  privacy: 'What stays here',
  privacy_text: 'Everything does, unless you ask for something else.',
  words: 'Your words',
  words_value: 'Kept on this computer',
  words_note: 'No account, no telemetry, no training on what you write.',
  network: 'The network',
  network_value: 'Only when you ask',
  network_note:
    'Finding and fetching models goes out. Settings list every connection, and one switch stops them all.',
  deleting: 'Deleting',
  deleting_value: 'Really deletes',
  deleting_note: 'Ten seconds to undo, thirty days in the trash, then nothing is left on the disk.',
} as const;
