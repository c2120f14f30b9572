// The Enter that ends a composition of an input method belongs to it. WebKit sends it behind the composition, with the
// key code 229; so it is pressed here, as a key and with the letter that would submit a form.

import { ANSWERED, QUESTION, assert, browse, byId, standIn } from './scenario.mjs';

const INPUT_METHOD_KEY_CODE = 229;
/** Nothing is expected to happen; what would, happens at once. */
const AT_ONCE_MS = 150;

export async function anInputMethodEndsNothing() {
  const server = await standIn(400);
  const { page, requests, assertQuiet, close } = await browse(server.origin);
  const devtools = await page.context().newCDPSession(page);
  const press = async (key, text) => {
    const common = { key, code: key, windowsVirtualKeyCode: INPUT_METHOD_KEY_CODE };
    await devtools.send('Input.dispatchKeyEvent', { type: 'keyDown', text, ...common });
    await devtools.send('Input.dispatchKeyEvent', { type: 'keyUp', ...common });
    await page.waitForTimeout(AT_ONCE_MS);
  };
  const endComposition = () => press('Enter', '\r');
  /** Fills the field, ends a composition in it, and expects `there` still to be shown. */
  const stays = async (field, there = field) => {
    await page.locator(field).last().fill('日本語');
    await endComposition();
    await press('Escape');
    assert(await page.locator(there).last().isVisible(), `${there} is gone`);
  };
  try {
    await page.locator(`${byId('conversation-row')}[data-id="c1"] button`).first().click();
    await page.locator(ANSWERED).first().waitFor();

    await stays(byId('composer'));
    // Rows are drawn as they come near the view: their number says nothing.
    assert(!requests.some((url) => url.endsWith('/api/send')), 'a message was sent');

    await page.locator(byId('title')).click();
    await stays(`header ${byId('conversation-title')}`);
    await page.keyboard.press('Escape');

    await page.keyboard.press('Control+k');
    await stays(byId('palette-input'), byId('palette'));
    await page.keyboard.press('Escape');

    await page.locator(`${QUESTION} ${byId('edit-message')}`).last().click({ force: true });
    await stays(byId('edit-text'));
    await page.keyboard.press('Escape');

    await page.keyboard.press('Control+f');
    await stays(byId('find'));
    await page.keyboard.press('Escape');

    await page.locator(byId('model-picker')).click();
    await stays(byId('model-search'));
    await page.keyboard.press('Escape');

    await page.keyboard.press('Control+Shift+f');
    await stays(byId('search'));
    assert((await page.locator(byId('search')).inputValue()) === '日本語', 'the search was cleared');
    await page.keyboard.press('Escape');

    // A form of one field, which the browser submits by itself.
    await page.keyboard.press('Control+2');
    const path = page.locator(byId('model-path'));
    if (!(await path.isVisible())) await page.getByRole('button', { name: 'Add' }).first().click();
    await path.fill('/models/模型.gguf');
    const before = requests.length;
    await endComposition();
    const called = requests.slice(before).filter((url) => url.includes('/api/model_'));
    assert(called.length === 0, `the form was submitted: ${called}`);
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}
