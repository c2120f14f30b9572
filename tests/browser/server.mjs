// The local server from the window: started, reached by other devices, given another key, stopped.

import { assert, browse, byId, look, standIn } from './scenario.mjs';

export async function theServerIsControlledInTheWindow() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.keyboard.press('Control+,');
    await page.locator(`${byId('settings-section')}[data-section="Local server"]`).click();
    await page.locator(byId('server-start')).click();
    await page.locator(byId('server-requests')).getByText('/v1/models').waitFor();
    assert((await page.locator(byId('qr-code')).count()) === 0, 'other devices are invited without being allowed');
    const key = page.locator(byId('server-key'));
    assert(!(await key.innerText()).includes('0123'), 'the key is shown at once');
    await page.locator(byId('server-key-show')).click();
    assert((await key.innerText()).startsWith('0123456789abcdef'), 'the key stays hidden');

    await page.locator(byId('setting-server_devices')).click();
    await page.locator(byId('server-restart')).click();
    await page.locator(byId('qr-code')).waitFor();
    await page.locator(byId('server-restart')).waitFor({ state: 'detached' });
    await look(page, 'server');
    await page.emulateMedia({ colorScheme: 'dark' });
    await look(page, 'server-dark');

    await page.locator(byId('server-key-renew')).click();
    await page.locator(byId('server-key-renew-now')).click();
    await page.getByText('fedcba9876543210', { exact: false }).first().waitFor();
    await page.locator(byId('server-stop')).click();
    await page.locator(byId('server-start')).waitFor();
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}
