import { describe, expect, it } from 'vitest';
import {
  cellAt,
  cellSize,
  inside,
  lineOfCells,
  moveCell,
  ravel,
  sameIndex,
  sizeOf,
  stridesOf,
  unravel,
  visibleRange,
} from './indices';

describe('C order', () => {
  const shape = [2, 3, 4];
  it('has strides and a size', () => {
    expect(stridesOf(shape)).toEqual([12, 4, 1]);
    expect(stridesOf([])).toEqual([]);
    expect(sizeOf(shape)).toBe(24);
    expect(sizeOf([])).toBe(1);
    expect(sizeOf([3, 0])).toBe(0);
  });
  it('goes from index to position and back', () => {
    expect(ravel([1, 2, 3], shape)).toBe(23);
    for (let at = 0; at < 24; at += 1) expect(ravel(unravel(at, shape), shape)).toBe(at);
    expect(ravel([], [])).toBe(0);
  });
  it('knows what is outside', () => {
    expect(inside([1, 2, 3], shape)).toBe(true);
    expect(inside([1, -1, 3], shape)).toBe(false);
    expect(inside([2, 0, 0], shape)).toBe(false);
    expect(inside([0, 0], shape)).toBe(false);
  });
  it('compares indices', () => {
    expect(sameIndex([1, 2], [1, 2])).toBe(true);
    expect(sameIndex([1, 2], [1])).toBe(false);
    expect(sameIndex(null, [1])).toBe(false);
  });
});

describe('cells', () => {
  it('finds the cell under a point', () => {
    expect(cellAt(25, 9, { wide: 10, high: 10 }, 3, 3)).toEqual({ row: 0, col: 2 });
    expect(cellAt(30, 9, { wide: 10, high: 10 }, 3, 3)).toBeNull();
    expect(cellAt(-1, 9, { wide: 10, high: 10 }, 3, 3)).toBeNull();
    expect(cellAt(10, 10, { wide: 5, high: 0.5 }, 100, 100)).toEqual({ row: 20, col: 2 });
  });
  it('moves by keys and stays inside', () => {
    expect(moveCell({ row: 0, col: 0 }, 'ArrowUp', 3, 3)).toEqual({ row: 0, col: 0 });
    expect(moveCell({ row: 0, col: 0 }, 'ArrowRight', 3, 3)).toEqual({ row: 0, col: 1 });
    expect(moveCell({ row: 1, col: 1 }, 'End', 3, 3)).toEqual({ row: 1, col: 2 });
    expect(moveCell({ row: 1, col: 1 }, 'PageDown', 30, 3)).toEqual({ row: 11, col: 1 });
    expect(moveCell({ row: 1, col: 1 }, 'a', 3, 3)).toBeNull();
  });
  it('adapts their size in whole pixels', () => {
    expect(cellSize(6, 6, 170, 130, 22)).toEqual({ wide: 21, high: 21 });
    expect(cellSize(2, 2, 170, 130, 22)).toEqual({ wide: 22, high: 22 });
    expect(cellSize(100, 340, 170, 130, 22)).toEqual({ wide: 0.5, high: 0.5 });
  });
  it('stretches across a hairline', () => {
    expect(cellSize(200, 10, 210, 150, 38)).toEqual({ wide: 7, high: 0.75 });
    expect(cellSize(1, 420, 210, 150, 38)).toEqual({ wide: 0.5, high: 19 });
  });
  it('leaves no hole on a fast line', () => {
    const line = lineOfCells({ row: 0, col: 0 }, { row: 2, col: 5 });
    expect(line).toHaveLength(6);
    expect(line.at(-1)).toEqual({ row: 2, col: 5 });
    expect(lineOfCells({ row: 1, col: 1 }, { row: 1, col: 1 })[0]).toEqual({ row: 1, col: 1 });
  });
});

it('draws only rows in sight', () => {
  expect(visibleRange(0, 100, 20, 1000, 2)).toEqual({ start: 0, end: 7 });
  expect(visibleRange(2000, 100, 20, 1000, 2)).toEqual({ start: 98, end: 107 });
  expect(visibleRange(0, 100, 20, 3, 2)).toEqual({ start: 0, end: 3 });
  expect(visibleRange(1e6, 100, 20, 3, 2)).toEqual({ start: 3, end: 3 });
});
