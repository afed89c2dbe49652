import { describe, expect, it } from 'vitest';
import { combineOf, runningMaxima, runningSums, runningValues, worthShowing } from './sums';

const terms = [1, -3, 5].map((product) => ({ product }));

describe('running values', () => {
  it('adds up term by term', () => {
    expect(runningSums(terms)).toEqual([1, -2, 3]);
    expect(runningValues(terms, 'sum')).toEqual([1, -2, 3]);
    expect(runningSums([])).toEqual([]);
  });
  it('turns to NaN after a term that is not finite', () => {
    expect(runningSums([{ product: 1 }, { product: null }, { product: 1 }])).toEqual([1, NaN, NaN]);
  });
  it('takes the largest, never the padding', () => {
    expect(runningValues(terms, 'maximum')).toEqual([1, 1, 5]);
    expect(runningMaxima([{ product: 0, padding: true }, { product: -2 }])).toEqual([-Infinity, -2]);
  });
  it('has none where a cell is neither', () => {
    expect(runningValues(terms, 'none')).toEqual([]);
  });
});

describe('combineOf', () => {
  it('believes the sum of the server', () => {
    expect(combineOf(terms, 3, 3)).toBe('sum');
    expect(combineOf(terms, 3, 99)).toBe('sum');
  });
  it('takes a null with a term that is not finite for a sum that is not', () => {
    expect(combineOf([...terms, { product: null }], null, null)).toBe('sum');
  });
  it('finds the maximum of a pooling', () => {
    expect(combineOf(terms, null, 5)).toBe('maximum');
    expect(combineOf([{ product: 0, padding: true }, { product: -2 }], null, -2)).toBe('maximum');
    expect(combineOf([{ product: 0 }], null, 0)).toBe('maximum');
  });
  it('says none otherwise', () => {
    expect(combineOf(terms, null, 0.3)).toBe('none');
    expect(combineOf([], 1, 1)).toBe('none');
  });
});

it('leaves out terms that repeat the value', () => {
  expect(worthShowing([{ parts: [{ value: 2 }], product: 2 }])).toBe(false);
  expect(worthShowing([{ parts: [{ value: 2 }], product: 4 }])).toBe(true);
  expect(worthShowing([{ parts: [{ value: 2 }, { value: 1 }], product: 2 }])).toBe(true);
});
