import { describe, expect, it } from 'vitest';
import { combineOf, runningMaxima, runningSums, runningValues } from './sums';

const terms = [1, -3, 5].map((product) => ({ product }));

describe('running values', () => {
  it('adds up term by term', () => {
    expect(runningSums(terms)).toEqual([1, -2, 3]);
    expect(runningValues(terms, 'mean')).toEqual([1, -1, 1]);
    expect(runningMaxima(terms)).toEqual([1, 1, 5]);
    expect(runningSums([])).toEqual([]);
  });
  it('turns to NaN after a term that is not finite', () => {
    expect(runningSums([{ product: 1 }, { product: null }, { product: 1 }])).toEqual([1, NaN, NaN]);
  });
});

describe('combineOf', () => {
  it('reads the total as sum, maximum or mean', () => {
    expect(combineOf(terms, 3, true)).toBe('sum');
    expect(combineOf(terms, 5, true)).toBe('maximum');
    expect(combineOf(terms, 1, true)).toBe('mean');
  });
  it('takes a sum that cancels for a sum', () => {
    expect(combineOf([{ product: 1e6 }, { product: -1e6 }], 0.01, true)).toBe('sum');
  });
  it('says sum when it cannot tell', () => {
    expect(combineOf(terms, 99, true)).toBe('sum');
    expect(combineOf(terms, 5, false)).toBe('sum');
    expect(combineOf(terms, null, true)).toBe('sum');
    expect(combineOf([], 1, true)).toBe('none');
  });
});
