import { expect, it } from 'vitest';
import type { TracePart } from '../api/types';
import { marksOf, marksOfTrace, pinsOf } from './marks';

const part = (pin: string, index: number[], padding = false): TracePart => ({
  pin,
  block: `${pin} source`,
  source_pin: 'output',
  index,
  value: 1,
  ...(padding && { padding }),
});
const terms = [
  { parts: [part('input', [-1, 0], true), part('filter', [0])], product: 0, padding: true },
  { parts: [part('input', [0, 0]), part('filter', [1])], product: 1 },
  { parts: [part('input', [0, 0]), part('filter', [2])], product: 1 },
];

it('marks the cell itself and each input cell once, padding never', () => {
  expect(marksOfTrace('y', 'output', [3], terms, null)).toEqual([
    { block: 'y', pin: 'output', cells: [[3]] },
    { block: 'filter source', pin: 'output', cells: [[0], [1], [2]] },
    { block: 'input source', pin: 'output', cells: [[0, 0]] },
  ]);
});

it('says which cells belong to the step', () => {
  const marks = marksOfTrace('y', 'output', [3], terms, 2);
  expect(marks.map((mark) => mark.current)).toEqual([undefined, [2], [0, 0]]);
  expect(marksOfTrace('y', 'output', [3], terms, 0).map((mark) => mark.current)).toEqual([undefined, [0], undefined]);
});

it('gives a view its own marks', () => {
  const marks = marksOfTrace('y', 'output', [3], terms, 2);
  expect(marksOf(marks, 'input source', 'output')).toEqual({ cells: [[0, 0]], current: [0, 0] });
  expect(marksOf(marks, 'input source', 'other')).toEqual({ cells: [], current: null });
  expect(marksOf([[1, 2]], 'any', 'pin')).toEqual({ cells: [[1, 2]], current: null });
  expect(marksOf(undefined, 'any', 'pin')).toEqual({ cells: [], current: null });
});

it('lists inputs in their order', () => {
  expect(pinsOf(terms)).toEqual(['input', 'filter']);
});
