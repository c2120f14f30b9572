import { describe, expect, it } from 'vitest';
import { nextAnnouncement } from './announcements';

describe('nextAnnouncement', () => {
  it.each<[string, boolean, string]>([
    ['One sentence. Another is', false, 'One sentence.'],
    ['One sentence. Another is', true, 'One sentence. Another is'],
    ['No end', false, ''],
    ['# Title\n- **bold** `code`\n> said\n', false, 'Title bold code said'],
    ['See [the page](https://example.org/x).\n', false, 'See the page.'],
    ['```rust\nfn f() {}\n```\n', false, 'Code in rust: fn f() {}'],
    ['| a | b |\n|---|:-:|\n| 1 | 2 |\n', false, 'a, b 1, 2'],
    ['Version 2.5 is out. ', false, 'Version 2.5 is out.'],
  ])('%j', (text, over, expected) => {
    expect(nextAnnouncement(text, 0, over).text).toBe(expected);
  });

  it('says everything once, however it comes', () => {
    const answer = 'First one. Second one!\nThird one? And the rest';
    const said: string[] = [];
    let announced = 0;
    for (let end = 1; end <= answer.length; end++) {
      const now = nextAnnouncement(answer.slice(0, end), announced, end === answer.length);
      if (now.text !== '') said.push(now.text);
      announced = now.end;
    }
    expect(said.join(' ')).toBe(answer.replace('\n', ' '));
  });
});
