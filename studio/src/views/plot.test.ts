import { describe, expect, it } from 'vitest';
import { axisFor, heightOf, logTicks, pathOf, ticks } from './plot';

const frame = { left: 0, top: 0, width: 100, height: 100 };

describe('ticks', () => {
  it('are round', () => {
    expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks(0.13, 0.98, 4)).toEqual([0.5]);
    expect(ticks(1, 120, 5)).toEqual([50, 100]);
    expect(ticks(-3, 3, 3)).toEqual([-2, 0, 2]);
  });
  it('stand empty ranges', () => {
    expect(ticks(2, 2)).toEqual([2]);
    expect(ticks(NaN, 2)).toEqual([]);
  });
  it('are powers of ten on a logarithm', () => {
    expect(logTicks(0.005, 200)).toEqual([0.01, 0.1, 1, 10, 100]);
    expect(logTicks(1e-12, 1)).toHaveLength(5);
    expect(logTicks(0.2, 0.8).length).toBeGreaterThan(0);
  });
});

describe('axis', () => {
  it('leaves out what it cannot show', () => {
    expect(axisFor([1, null, NaN, 2], false)).toMatchObject({ low: 1, high: 2 });
    expect(axisFor([-1, 0, 0.1, 10], true)).toMatchObject({ low: 0.1, high: 10 });
    expect(axisFor([], false).ticks).toEqual([]);
    expect(axisFor([-1], true).ticks).toEqual([]);
  });
  it('goes down to 0 when the curve nearly does', () => {
    expect(axisFor([2, 0.1], false).low).toBe(0);
    expect(axisFor([2, 1.9], false).low).toBe(1.9);
  });
  it('makes room around a constant', () => {
    const axis = axisFor([5, 5], false);
    expect(heightOf(5, axis, frame)).toBeCloseTo(50);
    expect(heightOf(5, axisFor([5, 5], true), frame)).toBeCloseTo(50);
    expect(heightOf(0, axisFor([0], false), frame)).toBeCloseTo(50);
  });
});

describe('path', () => {
  it('has gaps where values are not finite', () => {
    const axis = axisFor([0, 1], false);
    expect(pathOf([0, 1, null, 0, 1], axis, frame)).toBe('M0.0,100.0L25.0,0.0M75.0,100.0L100.0,0.0');
    expect(pathOf([], axis, frame)).toBe('');
  });
  it('keeps peaks of long curves', () => {
    const values = Array.from({ length: 10000 }, (_, at) => (at === 5555 ? 9 : 1));
    const path = pathOf(values, axisFor(values, false), frame);
    expect(path).toContain(',0.0');
    expect(path.length).toBeLessThan(4000);
  });
});
