/** Files with messages. */
export const files = {
  attach: 'Attach files',
  attached: 'Attached files',
  of_message: 'Files in this message',
  drop: 'Drop to attach',
  drop_about:
    'Images, text, office files, books, code, PDF and CSV files are attached to your message. Chat exports are imported.',
  let_go: 'Release to attach',

  gone: 'No longer available. Attach it again.',
  reading: 'Reading…',
  text: 'Text',
  markdown: 'Markdown',
  code: 'Code',
  csv: 'CSV',
  pdf: 'PDF',
  image: 'Image',
  document: 'Document',
  spreadsheet: 'Spreadsheet',
  presentation: 'Presentation',
  use_seeing: 'Use {name}',
  without_images: 'Remove the images',
  loading_image: 'Loading the image…',
  previous_image: 'Previous image',
  next_image: 'Next image',
  searched: 'searched',
  to_be_searched: 'searched when you send',
  named: '{name}: {detail}',
  open: 'Show the text of {name}',
  remove: 'Remove {name}',

  hidden: {
    one: '{name} contains {n} invisible character ({names}). The model sees it as visible text.',
    other:
      '{name} contains {n} invisible characters ({names}). The model sees them as visible text.',
  },
  instruction: '{name} contains instructions for the model: “{quote}”.',
  partly_unreadable: 'partly unreadable',
  scanned: {
    one: '{n} scanned page, read as an image',
    other: '{n} scanned pages, read as images',
  },
  scanned_unseen: {
    one: '{n} scanned page, not read: this model can’t see images',
    other: '{n} scanned pages, not read: this model can’t see images',
  },
  scanned_left_out: {
    one: '{n} more scanned page not read',
    other: '{n} more scanned pages not read',
  },
  scanned_no_room: {
    one: '{n} scanned page left out: no room in the prompt',
    other: '{n} scanned pages left out: no room in the prompt',
  },
  unreadable:
    '{name} is partly unreadable: about {percent} % of its letters could not be decoded. Check its text, or run text recognition (OCR) on it and attach the result.',
  guessed: '{name} was read as {encoding}. If characters look wrong, check its text.',

  pasted_name: 'Pasted text.txt',
  pasted_image: 'Pasted image',
  pasted: 'The long text you pasted is attached as a file.',
  put_in: 'Insert into message',

  sources: 'Sources',
  all_sources: 'All {n}',
  whole: 'whole file',
  page: 'page {page}',
  line: 'line {line}',
  lines: 'lines {first}–{last}',

  content: 'File text',
  part: '{size}, part of its text',
  earlier: 'Previous part',
  later: 'Next part',

  from_here: 'Files…',
  from_server: 'From {name}…',
  offered_by: 'Resources from {name}',
  asking_server: 'Loading resources…',
  find_offered: 'Search',
  nothing_offered: 'This server offers no resources.',
  by_address: 'From address',
  address: 'Address',
  attach_it: 'Attach',
  address_about: 'Replace the words in braces.',
} as const;
