// The views of the gallery: how each is reached from a fresh page.

export const id = (page, name) => page.locator(`[data-testid="${name}"]`).first();
const press = (keys) => (page) => page.keyboard.press(keys);
const section = (name) => async (page) => {
  await page.keyboard.press('Control+,');
  await page.locator(`[data-testid="settings-section"][data-section="${name}"]`).click();
};
const tab = (name) => async (page) => {
  await page.keyboard.press('Control+2');
  await id(page, `models-tab-${name}`).click();
};
const step = (n) => async (page) => {
  await section('General')(page);
  await id(page, 'show-welcome').click();
  for (let at = 1; at < n; at++) await id(page, 'welcome-next').click();
};

const speaking = (language, then) => async (page) => {
  await section('General')(page);
  await id(page, 'setting-language').selectOption(language);
  await page.locator(`html[lang="${language}"]`).waitFor();
  await page.keyboard.press('Escape');
  await then(page);
};
const first = async (page) => {
  await page.locator('[data-testid="conversation-row"][data-id="c1"] button').first().click();
  await id(page, 'message-assistant').waitFor();
};

/** An answer that ends early. */
const ending = (question, then) => async (page) => {
  await id(page, 'composer').fill(question);
  await page.keyboard.press('Enter');
  await id(page, then).waitFor();
};

const diagram = (at) => async (page) => {
  await id(page, 'composer').fill('A diagram, please');
  await page.keyboard.press('Enter');
  await page.locator('[data-testid="message-assistant"][data-state="complete"]').waitFor();
  await page.locator('[data-testid="diagram-draw"]').nth(at).click();
  await id(page, 'diagram').waitFor();
  await id(page, 'diagram').scrollIntoViewIfNeeded();
};
/** A message with attachments: as a draft, then sent. */
const files = (isSent) => async (page) => {
  await page.locator('[data-testid="attach-input"]').setInputFiles([
    { name: 'plan.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan\n\nAdd a model.\n') },
    { name: 'stoves and their chimneys, 1890–1910.pdf', mimeType: 'application/pdf', buffer: Buffer.from('x'.repeat(90_000)) },
    { name: 'woods.csv', mimeType: 'text/csv', buffer: Buffer.from('wood,heat\noak,4.2\n') },
  ]);
  await id(page, 'composer').fill('What do these say about birch?');
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="file"][data-state="ready"]').length === 3);
  await id(page, 'draft-count').waitFor();
  if (!isSent) return;
  await page.keyboard.press('Enter');
  await page.locator('[data-testid="message-assistant"][data-state="complete"]').waitFor();
  // Rows far above are not rendered.
  await page.locator('[role="region"][aria-label="Chat"]').focus();
  await page.keyboard.press('Home');
  await id(page, 'sent-files').waitFor();
};

/** Each view starts from a fresh page. */
export const VIEWS = {
  'new-chat': () => {},
  chat: async (page) => {
    await page.getByText('What is an inglenook?').first().click();
    await id(page, 'message-assistant').waitFor();
  },
  slash: async (page) => {
    await id(page, 'composer').pressSequentially('/');
    await id(page, 'slash-menu').waitFor();
  },
  'slash-form': async (page) => {
    await id(page, 'composer').pressSequentially('/summ');
    await id(page, 'slash-prompt').click();
    await id(page, 'prompt-form').waitFor();
  },
  context: async (page) => {
    await first(page);
    await id(page, 'context-ring').click();
    await id(page, 'context-parts').waitFor();
  },
  project: async (page) => {
    await page.locator('button[data-folder="f1"]').focus();
    await page.keyboard.press('Shift+F10');
    await id(page, 'folder-project').click();
    await id(page, 'project-file').waitFor();
  },
  'project-chat': async (page) => {
    await page.locator('button[data-folder="f1"]').focus();
    await page.keyboard.press('Shift+F10');
    await id(page, 'folder-new-chat').click();
    await id(page, 'project-open').waitFor();
    await id(page, 'composer').fill('Which wood burns longest?');
    await id(page, 'draft-count').waitFor();
    await id(page, 'context-ring').click();
    await id(page, 'context-project').waitFor();
  },
  'project-ar': speaking('ar', async (page) => VIEWS.project(page)),
  tune: async (page) => {
    await tab('tune')(page);
    await id(page, 'tune-open').click();
    await id(page, 'tune-name').fill('parrot');
    await id(page, 'tune-source').selectOption('all');
    await id(page, 'tune-preview').click();
    await id(page, 'tune-preview-card').waitFor();
  },
  'tune-ar': speaking('ar', async (page) => VIEWS.tune(page)),
  memory: async (page) => {
    await id(page, 'memory-open').click();
    await id(page, 'memory-share').locator('summary').click();
  },
  'memory-ar': speaking('ar', async (page) => VIEWS.memory(page)),
  remember: async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').first().click();
    await id(page, 'message-remember').click();
    await id(page, 'note-offered').waitFor();
  },
  'end-length': ending('Let it be cut short', 'continue'),
  'end-full': ending('Let it run: it runs over', 'step-compact'),
  diagram: diagram(0),
  pie: diagram(1),
  gantt: diagram(2),
  edit: async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'answer-edit').click();
    await id(page, 'edit-text').waitFor();
  },
  once: async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'regenerate-once').click();
    await id(page, 'once-temperature').fill('1.2');
  },
  instruments: async (page) => {
    await first(page);
    // The setting outlives the page and shows off until it is loaded: a click before that would switch it off.
    const read = page.waitForResponse((answer) => answer.url().endsWith('/api/profile'));
    await page.keyboard.press('Control+i');
    await (await read).finished();
    await page.waitForTimeout(100);
    await id(page, 'profile-switch').check();
    await id(page, 'profile-writing').waitFor();
    await id(page, 'profile-trace').scrollIntoViewIfNeeded();
  },
  'chat-de': speaking('de', first),
  'chat-ja': speaking('ja', first),
  'chat-ar': speaking('ar', first),
  'end-length-ar': speaking('ar', ending('Let it be cut short', 'continue')),
  'settings-de': speaking('de', section('Chat')),
  'settings-ja': speaking('ja', section('Hardware')),
  'settings-ar': speaking('ar', section('Chat')),
  'models-ar': speaking('ar', tab('discover')),
  options: press('Control+Shift+B'),
  palette: async (page) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('mod');
    await id(page, 'palette-row').waitFor();
  },
  picker: press('Control+Shift+M'),
  'remote-new': async (page) => {
    await press('Control+Shift+M')(page);
    await page.locator('[data-testid="model-option"][data-id="remote:m"]').click();
    await id(page, 'picker-server').waitFor();
  },
  'remote-chat': async (page) => {
    await first(page);
    await VIEWS['remote-new'](page);
    await id(page, 'answer-source').waitFor();
  },
  models: tab('here'),
  discover: async (page) => {
    await tab('discover')(page);
    await id(page, 'hub-model').click();
    await id(page, 'hub-file').waitFor();
  },
  'discover-offline': async (page) => {
    await tab('discover')(page);
    await id(page, 'hub-search').fill('offline');
    await id(page, 'notice').waitFor();
  },
  servers: tab('servers'),
  model: async (page) => {
    await tab('here')(page);
    await id(page, 'model-options').click();
    await id(page, 'model-details').click();
  },
  settings: section('Chat'),
  'settings-advanced': async (page) => {
    await section('Chat')(page);
    await id(page, 'settings-advanced').click();
  },
  'settings-search': async (page) => {
    await page.keyboard.press('Control+,');
    await id(page, 'settings-search').fill('backup');
    await id(page, 'settings-place').waitFor();
  },
  files: files(false),
  'files-sent': files(true),
  'file-text': async (page) => {
    await files(false)(page);
    await id(page, 'file-open').click();
    await id(page, 'file-text').waitFor();
  },
  tools: section('Tools'),
  'tool-list': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-list').locator('summary').click();
  },
  'tool-form': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-server-add').click();
  },
  'tool-paste': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-server-paste').click();
  },
  plugins: async (page) => {
    await section('Tools')(page);
    await page.locator('[data-testid="plugin"]').last().scrollIntoViewIfNeeded();
  },
  'endpoint-form': async (page) => {
    await tab('servers')(page);
    await id(page, 'endpoint-add').click();
  },
  'local-server': section('Local server'),
  'once-ar': speaking('ar', async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'regenerate-once').click();
  }),
  'picker-ar': speaking('ar', press('Control+Shift+M')),
  shortcuts: section('Shortcuts'),
  privacy: section('Privacy & network'),
  about: section('About'),
  trash: async (page) => id(page, 'trash-open').click(),
  'welcome-1': step(1),
  'welcome-3': step(3),
};
