import { expect, it } from 'vitest';
import { ROWS } from '../store/samples';
import { found, grouped } from './search';

const names = (text: string) => found(ROWS.values(), text).map((row) => row.type);

it('finds names by their start first, then by any part, then by what is said of them', () => {
  expect(names('conv')).toEqual(['Conv2D']);
  expect(names('on')).toEqual(['Const', 'Conv2D']);
  expect(names('about relu')).toEqual(['Relu']);
  expect(names('nothing of this')).toEqual([]);
  expect(names(' ')).toHaveLength(ROWS.size);
});

it('keeps the order of groups', () => {
  expect(grouped([...ROWS.values()]).map(([group, rows]) => [group, rows.length])).toEqual([['ops', ROWS.size]]);
});
