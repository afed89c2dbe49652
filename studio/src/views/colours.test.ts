import { describe, expect, it } from 'vitest';
import {
  colourOf,
  extremesOf,
  gradientOf,
  MINUS_INFINITY_COLOUR,
  NAN_COLOUR,
  paint,
  PLUS_INFINITY_COLOUR,
  positionIn,
  scaleFor,
  textOn,
} from './colours';

describe('scaleFor', () => {
  it('centres data of both signs at 0', () => {
    expect(scaleFor(-1, 3)).toEqual({ kind: 'diverging', low: -3, high: 3 });
    expect(colourOf(scaleFor(-1, 3), 0)).toEqual([247, 247, 247]);
  });
  it('uses viridis for one sign', () => {
    expect(scaleFor(0, 3)).toEqual({ kind: 'viridis', low: 0, high: 3 });
    expect(scaleFor(-3, 0).kind).toBe('viridis');
    expect(colourOf(scaleFor(2, 4), 2)).toEqual([68, 1, 84]);
    expect(colourOf(scaleFor(2, 4), 4)).toEqual([253, 231, 37]);
  });
  it('stands for data with nothing finite', () => {
    expect(scaleFor(Infinity, -Infinity)).toEqual({ kind: 'viridis', low: 0, high: 1 });
  });
});

describe('positions', () => {
  it('are in the middle for one number', () => {
    expect(positionIn(scaleFor(5, 5), 5)).toBe(0.5);
  });
  it('survive the largest floats', () => {
    expect(positionIn(scaleFor(-1.7e308, 1.7e308), 0)).toBe(0.5);
  });
  it('stay inside for numbers beyond the range', () => {
    expect(positionIn(scaleFor(0, 1), 7)).toBe(1);
    expect(positionIn(scaleFor(0, 1), -7)).toBe(0);
  });
});

it('counts what is not finite', () => {
  expect(extremesOf([1, NaN, -2, Infinity, -Infinity, NaN])).toEqual({ low: -2, high: 1, nan: 2, plus: 1, minus: 1 });
  expect(extremesOf([]).low).toBe(Infinity);
});

it('paints one pixel per number, odd ones in their own colours', () => {
  const bytes = new Uint8ClampedArray(16);
  paint([0, NaN, Infinity, -Infinity], scaleFor(0, 1), bytes);
  expect([...bytes]).toEqual([
    68,
    1,
    84,
    255,
    ...NAN_COLOUR,
    255,
    ...PLUS_INFINITY_COLOUR,
    255,
    ...MINUS_INFINITY_COLOUR,
    255,
  ]);
});

it('writes readably on any colour', () => {
  expect(textOn([253, 231, 37])).toBe('#000');
  expect(textOn([68, 1, 84])).toBe('#fff');
  expect(textOn([247, 247, 247])).toBe('#000');
});

it('draws the bar from low to high', () => {
  expect(gradientOf('viridis')).toMatch(/^linear-gradient\(to right, rgb\(68, 1, 84\).*rgb\(253, 231, 37\)\)$/);
});
