// Diagrams: drawn on a click, as an image, under the policy that the page is served with.

import { ANSWERED, assert, browse, byId, look, standIn } from './scenario.mjs';

export async function aDiagramIsDrawnFromItsSource() {
  const server = await standIn(400);
  const { page, requests, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).fill('A diagram, please');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    const early = requests.filter((url) => /diagram/.test(url));
    assert(early.length === 0, `what draws was fetched unasked: ${early}`);
    const image = page.locator(byId('diagram'));
    // A flow, a pie, a Gantt chart.
    for (let at = 0; at < 3; at++) {
      await page.locator(byId('diagram-draw')).nth(at).click();
      await image.waitFor();
      const size = await image.evaluate(async (it) => {
        await it.decode();
        return { width: it.naturalWidth, height: it.naturalHeight, src: it.src };
      });
      assert(size.width > 50 && size.height > 50, `an empty picture: ${JSON.stringify(size)}`);
      assert(size.src.startsWith('blob:'), `it comes from ${size.src}`);
      await look(page, `diagram-${at}`);
      await page.locator(byId('diagram-draw')).nth(at).click();
      assert((await image.count()) === 0, 'the source is shown again');
    }
    await page.locator(byId('diagram-draw')).nth(3).click();
    await page.locator('.md-code [role=status]').waitFor();
    assert((await image.count()) === 0, 'what it does not know is drawn');
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}
