import { expect, it } from 'vitest';
import { compare, relativeDifference } from './compare';

it('finds the largest differences and where they are', () => {
  const result = compare({ shape: [2, 2], data: [1, 100, 3, 0] }, { shape: [2, 2], data: [1, 102, 3, 1e-3] });
  expect(result.problem).toBeNull();
  expect(result).toMatchObject({ cells: 4, differing: 2, strange: 0 });
  expect(result.absolute).toEqual({ value: 2, index: [0, 1], a: 100, b: 102 });
  expect(result.relative).toEqual({ value: 1, index: [1, 1], a: 0, b: 1e-3 });
  expect([...result.difference]).toEqual([0, -2, 0, -1e-3]);
});

it('takes equal tensors for equal, NaN and infinities included', () => {
  const data = [NaN, Infinity, -Infinity, 0];
  const result = compare({ shape: [4], data }, { shape: [4], data: [NaN, Infinity, -Infinity, -0] });
  expect(result).toMatchObject({ differing: 0, strange: 0, absolute: null, relative: null });
});

it('counts cells that are odd on one side only', () => {
  const result = compare({ shape: [3], data: [NaN, Infinity, 1] }, { shape: [3], data: [1, -Infinity, 2] });
  expect(result).toMatchObject({ differing: 3, strange: 2 });
  expect(result.absolute?.index).toEqual([2]);
  expect(result.difference[0]).toBeNaN();
});

it('refuses shapes that differ', () => {
  const result = compare({ shape: [1, 2], data: [1, 2] }, { shape: [2], data: [1, 2] });
  expect(result.problem).toBe('shapes differ: [1, 2] and [2]');
  expect(result.differing).toBe(0);
});

it('compares scalars', () => {
  expect(compare({ shape: [], data: [1] }, { shape: [], data: [3] }).absolute).toMatchObject({ value: 2, index: [] });
});

it('is relative to the larger of the two', () => {
  expect(relativeDifference(0, 0)).toBe(0);
  expect(relativeDifference(1, 2)).toBe(0.5);
  expect(relativeDifference(-1, 1)).toBe(2);
});
