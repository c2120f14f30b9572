import { expect, it } from 'vitest';
import { serverExamples } from './server-examples';

it('names the port and the model, and leaves the key to the environment', () => {
  const [curl, python] = serverExamples(8642, 'starter').map((it) => it.text);
  const body = '{"model":"starter","messages":[{"role":"user","content":"Hello"}]}';
  expect(curl).toBe(
    'curl http://127.0.0.1:8642/v1/chat/completions \\\n' +
      '  -H "Authorization: Bearer $INGLENOOK_KEY" -H "Content-Type: application/json" \\\n' +
      `  -d '${body}'`,
  );
  expect(python).toContain('base_url="http://127.0.0.1:8642/v1"');
  expect(python).toContain(`create(**${body})`);
});

it('quotes a name for the shell', () => {
  expect(serverExamples(1, "it's").at(0)?.text).toContain(`"model":"it'\\''s"`);
});
