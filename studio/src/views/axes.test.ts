import { describe, expect, it } from 'vitest';
import {
  axisNames,
  cellOf,
  chooseAxis,
  extentOf,
  firstSlice,
  glanceSlice,
  guessLayout,
  indexOf,
  layoutsOf,
  moveSlider,
  sliceShowing,
  sliderAxes,
  takeSlice,
} from './axes';
import { ravel } from './indices';

describe('guessLayout', () => {
  it.each([
    [[1, 8, 8, 2], '', 'NHWC'],
    [[4, 96, 128, 3], '', 'NHWC'],
    [[1, 2, 8, 8], '', 'NCHW'],
    [[1, 1, 28, 28], '', 'NCHW'],
    [[3, 3, 8, 16], '', 'filter'],
    [[3, 3, 3, 16], '', 'filter'],
    [[5, 5, 1, 8], '', 'filter'],
    [[1, 1, 8, 16], '', 'filter'],
    [[1, 1, 1, 1], '', 'NHWC'],
    [[1, 1, 1, 8], '', 'filter'],
    [[1, 5, 1, 1], '', 'NHWC'],
    [[3, 1, 1, 1], '', 'filter'],
    [[3, 3, 1, 1], '', 'filter'],
    [[4, 1, 1, 10], '', 'axes'],
    [[2, 5, 1, 1], '', 'filter'],
    [[2, 8, 8, 2], 'filter', 'filter'],
    [[2, 2], 'filter', 'axes'],
    [[], '', 'axes'],
  ])('takes %j (%s) for %s', (shape, name, layout) => {
    expect(guessLayout(shape, name)).toBe(layout);
  });
});

describe('slices', () => {
  it('shows rows and columns of the layout', () => {
    expect(firstSlice([2, 8, 9, 3], 'NHWC')).toEqual({ rows: 1, cols: 2, at: [0, 0, 0, 0] });
    expect(firstSlice([2, 3, 8, 9], 'NCHW')).toMatchObject({ rows: 2, cols: 3 });
    expect(firstSlice([3, 3, 8, 16], 'filter')).toMatchObject({ rows: 0, cols: 1 });
    expect(firstSlice([1, 1, 8, 16], 'filter')).toMatchObject({ rows: 2, cols: 3 });
  });
  it('lays a row of numbers down, whichever axis it is along', () => {
    expect(glanceSlice([1, 5, 1, 1], 'NHWC')).toEqual({ rows: null, cols: 1, at: [0, 0, 0, 0] });
    expect(glanceSlice([3, 1, 1, 1], 'filter')).toMatchObject({ rows: null, cols: 0 });
    expect(glanceSlice([2, 5, 1, 1], 'filter')).toMatchObject({ rows: 0, cols: 1 });
    expect(glanceSlice([1, 1, 1, 1], 'NHWC')).toMatchObject({ rows: 1, cols: 2 });
    expect(extentOf([3, 1, 1, 1], glanceSlice([3, 1, 1, 1], 'filter'))).toEqual({ rows: 1, cols: 3 });
  });
  it('shows tensors of any rank', () => {
    expect(firstSlice([], 'axes')).toEqual({ rows: null, cols: null, at: [] });
    expect(firstSlice([5], 'axes')).toMatchObject({ rows: null, cols: 0 });
    expect(firstSlice([5, 6], 'axes')).toMatchObject({ rows: 0, cols: 1 });
    expect(firstSlice([4, 1, 1, 10], 'axes')).toMatchObject({ rows: 0, cols: 3 });
    expect(firstSlice([3, 1, 1], 'axes')).toMatchObject({ rows: 0, cols: 1 });
    expect(firstSlice([1, 1, 3], 'axes')).toMatchObject({ rows: 1, cols: 2 });
    expect(firstSlice([8, 9, 3], 'axes')).toMatchObject({ rows: 0, cols: 1 });
    expect(firstSlice([8, 9, 30], 'axes')).toMatchObject({ rows: 1, cols: 2 });
    expect(extentOf([], firstSlice([], 'axes'))).toEqual({ rows: 1, cols: 1 });
    expect(extentOf([5], firstSlice([5], 'axes'))).toEqual({ rows: 1, cols: 5 });
  });
  it('keeps positions that still exist', () => {
    expect(firstSlice([2, 8, 8, 3], 'NHWC', [1, 0, 0, 7]).at).toEqual([1, 0, 0, 2]);
  });
  it('offers sliders for long hidden axes', () => {
    const slice = firstSlice([1, 8, 8, 3], 'NHWC');
    expect(sliderAxes([1, 8, 8, 3], slice)).toEqual([3]);
    expect(moveSlider(slice, 3, 2).at).toEqual([0, 0, 0, 2]);
  });
  it('swaps two axes that clash', () => {
    const slice = { rows: 0, cols: 1, at: [0, 0, 0] };
    expect(chooseAxis(slice, 'rows', 1)).toEqual({ rows: 1, cols: 0, at: [0, 0, 0] });
    expect(chooseAxis(slice, 'cols', 2)).toEqual({ rows: 0, cols: 2, at: [0, 0, 0] });
  });
  it('goes from cell to index and back', () => {
    const slice = { rows: 1, cols: 2, at: [0, 0, 0, 2] };
    expect(indexOf(slice, 4, 5)).toEqual([0, 4, 5, 2]);
    expect(cellOf(slice, [0, 4, 5, 2])).toEqual({ row: 4, col: 5 });
    expect(cellOf(slice, [0, 4, 5, 1])).toBeNull();
    expect(cellOf(slice, [0, 4])).toBeNull();
  });
  it('follows an index into its slice', () => {
    const slice = { rows: 1, cols: 2, at: [0, 0, 0, 2] };
    expect(sliceShowing(slice, [0, 4, 5, 2])).toBe(slice);
    expect(cellOf(sliceShowing(slice, [0, 4, 5, 1]), [0, 4, 5, 1])).toEqual({ row: 4, col: 5 });
    expect(sliceShowing(slice, [1])).toBe(slice);
  });
  it('takes the numbers of any two axes', () => {
    const shape = [2, 3, 4];
    const data = Float32Array.from({ length: 24 }, (_, at) => at);
    const slice = { rows: 2, cols: 0, at: [0, 1, 0] };
    const taken = takeSlice(data, shape, slice);
    expect(taken).toHaveLength(8);
    for (let row = 0; row < 4; row += 1) {
      for (let col = 0; col < 2; col += 1) expect(taken[row * 2 + col]).toBe(ravel([col, 1, row], shape));
    }
    expect([...takeSlice([7], [], firstSlice([], 'axes'))]).toEqual([7]);
  });
});

it('names axes and offers layouts', () => {
  expect(axisNames([1, 2, 3, 4], 'NCHW')[1]).toBe('channel');
  expect(axisNames([1, 2], 'axes')).toEqual(['axis 0', 'axis 1']);
  expect(layoutsOf(4)).toContain('filter');
  expect(layoutsOf(3)).toEqual(['axes']);
});
