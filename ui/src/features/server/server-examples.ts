/** Lines for other programs that use the local server: a request by curl, and by OpenAI's package for Python. */

export interface ServerExample {
  readonly name: 'curl' | 'python';
  readonly text: string;
}

/** `model`: id of a model in the library. The key is left to be filled in. */
export function serverExamples(port: number, model: string): ServerExample[] {
  const base = `http://127.0.0.1:${port}/v1`;
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  return [
    {
      name: 'curl',
      text: [
        `curl ${base}/chat/completions \\`,
        `  -H "Authorization: Bearer $INGLENOOK_KEY" -H "Content-Type: application/json" \\`,
        `  -d '${body.replaceAll("'", String.raw`'\''`)}'`,
      ].join('\n'),
    },
    {
      name: 'python',
      text: [
        'import os',
        'from openai import OpenAI',
        `client = OpenAI(base_url="${base}", api_key=os.environ["INGLENOOK_KEY"])`,
        `answer = client.chat.completions.create(**${body})`,
        'print(answer.choices[0].message.content)',
      ].join('\n'),
    },
  ];
}
