// Where words go: with another server's model chosen, the page names the server wherever a message is written.

import { assert, browse, byId, look, standIn } from './scenario.mjs';

const SERVER = 'Workstation (192.168.1.20:8642)';
const LEAVES = `Your messages leave this computer and go to ${SERVER}. The connection is not encrypted (HTTP).`;

async function choose(page, id) {
  await page.locator(byId('model-picker')).click();
  await page.locator(`${byId('model-option')}[data-id="${id}"]`).click();
}

export async function aServersNameStandsWhereWordsAreWritten() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    const greeting = page.locator(byId('greeting-source'));
    await greeting.getByText('stay here').waitFor();
    await page.locator(byId('model-picker')).click();
    const option = page.locator(`${byId('model-option')}[data-id="remote:m"]`);
    assert((await option.innerText()).includes('Workstation'), 'the list of models names the server');
    await option.click();
    await greeting.getByText(LEAVES).waitFor();
    assert(!(await greeting.innerText()).includes('stay here'), 'nothing is promised that is not so');
    assert((await page.locator(byId('model-picker')).innerText()).includes('Workstation'), 'the message box names the server');
    await look(page, 'remote-greeting');

    // A chat that is not saved is sent there as well.
    await page.locator(byId('temporary')).click();
    await choose(page, 'remote:m');
    await greeting.getByText(LEAVES).waitFor();

    // A chat that exists says so above its messages, and no longer when it is answered here again.
    await page.locator(`${byId('conversation-row')}[data-id="c1"] button`).first().click();
    const note = page.locator(byId('answer-source'));
    await page.locator(byId('title')).waitFor();
    assert((await note.count()) === 0, 'a chat that is answered here has no note');
    await choose(page, 'remote:m');
    await note.getByText(LEAVES).waitFor();
    await look(page, 'remote-chat');
    await choose(page, 'starter');
    await note.waitFor({ state: 'detached' });
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}
