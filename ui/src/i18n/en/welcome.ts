/** The first steps. */
export const welcome = {
  first_steps: 'Welcome tour',
  step_of: 'Step {at} of {n}',
  go_on: 'Continue',
  start: 'Start chatting',

  title: 'Welcome to Inglenook',
  text: 'A warm corner by the fire for talking with language models on your own computer. A small model is built in, so you can start right away.',

  machine: 'This computer',
  machine_text: 'Models run on the hardware of this computer.',
  processor: 'CPU',
  cores: { one: '{n} core', other: '{n} cores' },
  runs_on_it: 'Runs every model.',
  runs_on_it_with: 'Runs every model, using {isa}.',
  memory: 'Memory',
  memory_decides: 'Limits how large a model can be.',
  memory_free: '{size} available for a model now.',
  graphics: 'GPU',
  graphics_note: 'Models that fit into its memory answer much faster.',

  model: 'Your first model',
  model_text:
    'The built-in model answers right away but knows little. A larger model knows far more and downloads while you chat.',
  answers_first: 'ready now',
  on_its_way: 'Downloading',
  have_file: 'I already have a model file:',

  privacy: 'Privacy',
  privacy_text: 'Everything stays on this computer unless you choose otherwise.',
  words: 'Your chats',
  words_value: 'Stay on this computer',
  words_note: 'No account, no telemetry, no training on what you write.',
  network: 'Network',
  network_value: 'Only when you ask for it',
  network_note:
    'Searching for and downloading models uses the network. Settings list every connection, and one switch turns them all off.',
  deleting: 'Deleting',
  deleting_value: 'Deleted means deleted',
  deleting_note: 'Ten seconds to undo, thirty days in the trash, then nothing remains on the disk.',
} as const;
