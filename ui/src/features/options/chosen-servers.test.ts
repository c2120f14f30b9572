import { expect, it } from 'vitest';
import { chosenServers } from './chosen-servers';

const SERVERS = [{ id: 'a' }, { id: 'b' }];

it.each([
  [null, true, ['a', 'b']],
  [null, false, []],
  [['b', 'gone'], false, ['b']],
  [[], true, []],
])('a choice of %j where tools are offered: %j', (own, isOffered, expected) => {
  expect(chosenServers(SERVERS, own, isOffered)).toEqual(expected);
});
