// A folder becomes a project; a chat that begins in it has its instructions and its file, and says so.

import { ANSWERED, KEY, assert, browse, byId, look } from './scenario.mjs';

async function menu(page, item) {
  await page.locator('button[data-folder]').first().focus();
  await page.keyboard.press('Shift+F10');
  await page.locator(byId(item)).click();
}

async function setUp(page) {
  await page.locator(byId('folder-add')).click();
  await page.locator(byId('conversation-title')).fill('Harbour');
  await page.keyboard.press('Enter');
  await page.locator('button[data-folder]').first().waitFor();
  await menu(page, 'folder-project');
  await page.locator(byId('project-instructions')).fill('Answer as the harbour master.');
  await page.locator(byId('project-file-input')).setInputFiles({
    name: 'tides.md',
    mimeType: 'text/markdown',
    buffer: Buffer.from('# Tides\n\nHigh water is at six.\n'),
  });
  await page.locator(byId('project-file')).waitFor();
  await look(page, 'project');
  await page.locator(byId('project-file-open')).click();
  await page.locator(byId('file-text')).waitFor();
  const text = await page.locator(byId('file-text')).innerText();
  assert(text.includes('High water is at six.'), `the file says ${text}`);
  await page.keyboard.press('Escape');
  await page.locator(byId('file-text')).waitFor({ state: 'detached' });
  await page.locator(byId('project-instructions')).waitFor();
  await page.locator(byId('project-save')).click();
  await page.locator(byId('project')).waitFor({ state: 'detached' });
}

export async function aChatBeginsInAProject(origin, server) {
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    await setUp(page);
    await menu(page, 'folder-new-chat');
    await page.locator(byId('project-open')).waitFor();
    const note = await page.locator(byId('project-note')).innerText();
    assert(note.includes('Harbour') && note.includes('1 file'), `the note says ${note}`);
    await page.locator(byId('composer')).fill('When is high water?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    const file = await page.locator(`${byId('sent-files')} ${byId('file-detail')}`).innerText();
    assert(file.includes('from the project'), `the file says ${file}`);

    await page.locator(byId('context-ring')).click();
    await page.locator(byId('context-project')).waitFor();
    const kinds = await page.locator(`${byId('context-parts')} [data-kind]`).evaluateAll((all) => all.map((it) => it.dataset.kind));
    for (const kind of ['project_system', 'project_files']) assert(kinds.includes(kind), `${kind} is not among ${kinds}`);
    await look(page, 'project-context');
    await page.keyboard.press('Escape');

    const [{ id, folder }] = await server.call('conversations_list', {});
    const { options } = await server.call('conversation_get', { id });
    assert(folder === options.project && options.system_prompt === 'Answer as the harbour master.', JSON.stringify(options));

    // A folder that is a project is not removed without a question; its chat stays.
    await menu(page, 'folder-remove');
    await page.locator(byId('project-folder-remove')).click();
    await page.locator('button[data-folder]').first().waitFor({ state: 'detached' });
    const left = await server.call('conversation_get', { id });
    assert(left.messages[0].attachments[0].name === 'tides.md', 'the chat lost its file');
    await assertQuiet();
  } finally {
    await close();
  }
}
