import { expect, it } from 'vitest';
import { layoutBars, placeOf } from './histogram';

const data = { edges: [0, 1, 2, 4], counts: [5, 0, 10] };

it('lays bars out by their edges', () => {
  const bars = layoutBars(data, 400, 100);
  expect(bars.map((bar) => bar.x)).toEqual([0, 100, 200]);
  expect(bars.map((bar) => bar.width)).toEqual([100, 100, 200]);
  expect(bars.map((bar) => bar.height)).toEqual([50, 0, 100]);
  expect(bars.map((bar) => bar.y)).toEqual([50, 100, 0]);
});

it('keeps a lone element in sight', () => {
  const [lone] = layoutBars({ edges: [0, 1, 2], counts: [1, 1e6] }, 100, 100);
  expect(lone?.height).toBe(1);
  const [seen] = layoutBars({ edges: [0, 1, 2], counts: [1, 1e6] }, 100, 100, true);
  expect(seen?.height).toBeCloseTo((100 * Math.log(2)) / Math.log1p(1e6));
});

it('stands data of one number and no data', () => {
  const bars = layoutBars({ edges: [3, 3, 3], counts: [0, 7] }, 100, 10);
  expect(bars.map((bar) => bar.width)).toEqual([50, 50]);
  expect(layoutBars({ edges: [], counts: [] }, 100, 10)).toEqual([]);
  expect(layoutBars({ edges: [null, null], counts: [0] }, 100, 10)[0]?.height).toBe(0);
});

it('places a number on the axis', () => {
  expect(placeOf(data, 1, 400)).toBe(100);
  expect(placeOf(data, 5, 400)).toBeNull();
  expect(placeOf(data, null, 400)).toBeNull();
  expect(placeOf({ edges: [3, 3], counts: [1] }, 3, 400)).toBeNull();
});
