import { describe, expect, it } from 'vitest';
import { parsePairs, splitCommandLine } from './parse-spec';

describe('what is typed into the form', () => {
  it('reads a command line', () => {
    const cases: [string, string[]][] = [
      ['npx -y server /home/me', ['npx', '-y', 'server', '/home/me']],
      [`  a  "b c"  'd "e"' `, ['a', 'b c', 'd "e"']],
      ['a\\ b "x\\"y"', ['a b', 'x"y']],
      ['C:\\tools\\x.exe --flag=""', ['C:\\tools\\x.exe', '--flag=']],
      ['""', ['']],
      ['', []],
    ];
    for (const [line, expected] of cases) expect(splitCommandLine(line), line).toEqual(expected);
  });

  it('reads variables and headers', () => {
    expect(parsePairs('A=1\n B = x=y \nAuthorization: Bearer abc:d\n\nnothing\n=x')).toEqual({
      A: '1',
      B: 'x=y',
      Authorization: 'Bearer abc:d',
    });
  });
});
