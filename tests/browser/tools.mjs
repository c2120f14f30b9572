// A tool of another program, from the page that adds it to the answer that uses it. The model is played by a few lines.

import { createServer } from 'node:http';
import { join } from 'node:path';
import { KEY, ROOT, assert, browse, byId, look, until } from './scenario.mjs';

/** Calls `echo` first, and says what came of it then; while it is held, an answer that said all doesn't end. */
function model() {
  let held = null;
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      if (request.url === '/v1/models') {
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ object: 'list', data: [{ id: 'm' }] }));
      }
      const last = JSON.parse(body).messages.at(-1);
      const call = { index: 0, id: 'c1', function: { name: 'echo', arguments: '{"text":"from the tool"}' } };
      const answered = last.role === 'tool';
      const delta = answered ? { content: `It said: ${last.content}` } : { tool_calls: [call] };
      const say = (it) => response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [it] })}\n\n`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      say({ index: 0, delta, finish_reason: null });
      const end = () => {
        say({ index: 0, delta: {}, finish_reason: answered ? 'stop' : 'tool_calls' });
        response.end('data: [DONE]\n\n');
      };
      if (answered && held) held.push(end);
      else end();
    });
  });
  server.hold = () => (held = []);
  server.letGo = () => {
    const ends = held;
    held = null;
    for (const end of ends) end();
  };
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

/** It is played by a few lines. */
async function playedModel(server) {
  const played = await model();
  await server.call('settings_set', { key: 'titles', value: false });
  await server.call('endpoint_add', { name: 'lab', url: `http://127.0.0.1:${played.address().port}` });
  await server.call('settings_set', { key: 'model', value: 'lab/m' });
  return played;
}

/** What a server offers goes with a message; a chat that is kept nowhere has its tools, and leaves nothing. */
export async function aTemporaryChatHasToolsAndResources(origin, server) {
  const played = await playedModel(server);
  const spec = { command: 'python3', args: [join(ROOT, 'tests/mcp/server.py')] };
  await server.call('tool_server_add', { name: 'test tools', spec });
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('temporary')).click();
    await page.locator(byId('attach')).click();
    await page.locator(byId('attach-server')).click();
    await page.locator(byId('resource')).getByText("Today's note").waitFor({ timeout: 30_000 });
    await look(page, 'resources');
    await page.locator(byId('resource-template')).click();
    await page.locator(byId('resource-address')).fill('note://named/ann');
    await page.locator(byId('resource-attach')).click();
    await page.locator(byId('files')).getByText(/tokens/).waitFor({ timeout: 60_000 });

    // What a server has words for, behind a slash: chosen by keys, filled in, put into the message box and not sent.
    await page.locator(byId('composer')).fill('/greet');
    await page.locator(byId('slash-prompt')).waitFor({ timeout: 30_000 });
    await look(page, 'slash-menu');
    await page.locator(byId('composer')).press('Enter');
    await page.locator(`${byId('prompt-argument')}[data-name="who"]:focus`).fill('Ada');
    await page.locator(byId('prompt-put')).click();
    await until(page, () => document.querySelector('[data-testid="composer"]').value === 'Greet Ada in a warm tone.');

    await page.locator(byId('composer')).fill('Use the tool.');
    await page.keyboard.press('Enter');
    const card = page.locator(byId('tool-card'));
    await card.and(page.locator('[data-state="asking"]')).waitFor({ timeout: 30_000 });
    played.hold();
    await page.locator(byId('tool-allow_once')).click();
    const transcript = page.getByRole('region', { name: 'Chat' });
    await transcript.getByText('It said: from the tool').waitFor({ timeout: 30_000 });
    await card.and(page.locator('[data-state="done"]')).waitFor();
    await look(page, 'temporary-tools');
    // The text is there, but the answer isn't over: it waits its turn, and is sent then.
    await page.locator(byId('composer')).fill('And again.');
    await page.keyboard.press('Enter');
    await page.locator(byId('queued')).getByText('And again.').waitFor();
    played.letGo();
    await page.locator(byId('tool-deny')).click();
    await transcript.getByText('It said: The user did not allow this call.').waitFor({ timeout: 30_000 });
    const kept = await server.call('conversations_list', {});
    assert(kept.length === 0, `something was kept: ${JSON.stringify(kept)}`);
    await assertQuiet();
    // What is refused is refused by the server, which the console tells too.
    await page.locator(byId('attach')).click();
    await page.locator(byId('attach-server')).click();
    await page.locator(byId('resource')).getByText('picture', { exact: true }).click();
    await page.locator(byId('files')).getByText(/as binary data \(image\/png\)/).waitFor();
    await look(page, 'resource-refused');
  } finally {
    await close();
    played.close();
  }
}

export async function aToolIsAddedAllowedAndAnswered(origin, server) {
  const played = await playedModel(server);
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('settings-open')).click();
    await page.locator(byId('settings-section')).getByText('Tools', { exact: true }).click();
    await page.locator(byId('tool-server-paste')).click();
    const script = join(ROOT, 'tests/mcp/server.py');
    const pasted = { mcpServers: { 'test tools': { command: 'python3', args: [script] } } };
    await page.locator(byId('tool-paste')).fill(JSON.stringify(pasted));
    await page.locator(byId('tool-paste-add')).click();
    await page.locator(`${byId('tool-server-row')}[data-state="ready"]`).waitFor({ timeout: 30_000 });
    await look(page, 'tool-servers');
    await page.locator(byId('settings-close')).click();

    await page.locator(byId('composer')).fill('Use the tool.');
    await page.keyboard.press('Enter');
    const card = page.locator(byId('tool-card'));
    await card.and(page.locator('[data-state="asking"]')).waitFor({ timeout: 30_000 });
    await page.locator(byId('announcer')).getByText('wants to call echo').waitFor({ state: 'attached' });
    await look(page, 'tool-asks');
    // By keys alone.
    await page.keyboard.press('Control+Alt+Enter');
    const transcript = page.getByRole('region', { name: 'Chat' });
    await transcript.getByText('It said: from the tool').waitFor({ timeout: 30_000 });
    await card.and(page.locator('[data-state="done"]')).waitFor();
    await card.locator('summary').click();
    const result = (await page.locator(byId('tool-result')).innerText()).trim();
    assert(result === 'from the tool', `the card shows ${result}`);
    await look(page, 'tool-done');
    await assertQuiet();
  } finally {
    await close();
    played.close();
  }
}
