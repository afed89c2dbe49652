import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatFlops,
  formatIndex,
  formatNumber,
  formatSeconds,
  formatShape,
  formatShort,
  widestText,
} from './numbers';

describe('formatNumber', () => {
  it.each([
    [0, '0'],
    [-0, '-0'],
    [1, '1'],
    [-2.5, '-2.5'],
    [100, '100'],
    [Math.fround(0.1), '0.1'],
    [1 / 3, '0.333333'],
    [123456, '123456'],
    [123456.7, '123457'],
    [999999.7, '1e6'],
    [1234567, '1.23457e6'],
    [-1e-4, '-0.0001'],
    [0.00009999996, '0.0001'],
    [0.0000123456789, '1.23457e-5'],
    [3.4e38, '3.4e38'],
    [NaN, 'NaN'],
    [Infinity, 'inf'],
    [-Infinity, '-inf'],
    [null, 'not finite'],
    [undefined, ''],
  ])('writes %s as %s', (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  it('reads back to six digits', () => {
    for (let power = -30; power <= 30; power += 1) {
      const value = Math.PI * 10 ** power;
      expect(Math.abs(Number(formatNumber(value)) / value - 1)).toBeLessThan(5e-6);
    }
  });
});

it('shortens for cells and forgets the sign of zero', () => {
  expect(formatShort(-0)).toBe('0');
  expect(formatShort(1234.5)).toBe('1230');
  expect(formatShort(-12345)).toBe('-12345');
  expect(formatShort(123456)).toBe('123000');
  expect(formatShort(null)).toBe('n/f');
});

it('measures the longest number', () => {
  expect(widestText([1, -1.5e-10, 2])).toBe('-1.5e-10'.length);
  expect(widestText([])).toBe(4);
  expect(widestText(new Float32Array(1e6).fill(1 / 3))).toBe(8);
});

it('writes units', () => {
  expect(formatBytes(999)).toBe('999 B');
  expect(formatBytes(23424)).toBe('23.4 kB');
  expect(formatFlops(451584)).toBe('452 kFLOP');
  expect(formatSeconds(6.718e-6)).toBe('6.72 µs');
  expect(formatSeconds(0)).toBe('0 ns');
});

it('writes counts, shapes and indices', () => {
  expect(formatCount(1234567)).toBe('1\u202f234\u202f567');
  expect(formatShape([])).toBe('scalar');
  expect(formatShape([1, null, 3])).toBe('1 × ? × 3');
  expect(formatIndex([0, 2])).toBe('[0, 2]');
});
