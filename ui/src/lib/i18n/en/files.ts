/** Files with messages. */
export const files = {
  attach: 'Attach files',
  attached: 'Attached files',
  of_message: 'Files of this message',
  drop: 'Drop to attach',
  drop_about: 'Text, code, PDF and CSV go with your message; exports of conversations are read in.',
  let_go: 'Let go to attach it',

  reading: 'Reading…',
  text: 'Text',
  markdown: 'Markdown',
  code: 'Code',
  csv: 'CSV',
  pdf: 'PDF',
  searched: 'searched',
  to_be_searched: 'will be searched',
  named: '{name}: {detail}',
  remove: 'Remove {name}',

  hidden: {
    one: '{name} has {n} hidden character ({names}), which the model is shown as such.',
    other: '{name} has {n} hidden characters ({names}), which the model is shown as such.',
  },
  instruction: '{name} speaks to the model: “{quote}”.',
  guessed: '{name} was read as {encoding}: look at its text if letters matter.',

  pasted_name: 'Pasted text.txt',
  pasted: 'The long text you pasted goes with your message as a file.',
  put_in: 'Put it in the message',

  sources: 'Sources',
  all_sources: 'All {n}',
  whole: 'the whole file',
  page: 'page {page}',
  line: 'line {line}',
  lines: 'lines {first}–{last}',

  content: 'Text of the file',
  part: '{size}, a part of its text',
  earlier: 'Earlier text',
  later: 'Later text',

  from_here: 'Files…',
  from_server: 'From {name}…',
  offered_by: 'What {name} offers',
  asking_server: 'Asking the server…',
  find_offered: 'Find',
  nothing_offered: 'It offers nothing to be read.',
  by_address: 'By address',
  address: 'Address',
  attach_it: 'Attach',
  address_about: 'Replace the words in braces.',
} as const;
