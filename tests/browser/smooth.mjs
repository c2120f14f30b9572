// Prints how much work streaming a long answer is for the page: processor time of its main thread, task by task.
// `node tests/browser/smooth.mjs` (the page must be built: `make ui`).

import { streamed } from './long.mjs';

for (const speed of [60, 500, 2000]) {
  console.log(JSON.stringify(await streamed(speed)));
}
