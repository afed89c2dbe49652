// Which two axes of a tensor are drawn as rows and columns, and what the others are called.
// A tensor does not say whether it is NHWC, NCHW or a filter: `guessLayout` guesses, people switch.

import { clamp, ravel, stridesOf, type Index } from './indices';

export type Layout = 'NHWC' | 'NCHW' | 'filter' | 'axes';

/** Two axes and a position on every axis; rows is null where there is only one axis or none. */
export interface Slice {
  rows: number | null;
  cols: number | null;
  at: readonly number[];
}

const NAMES: Record<Exclude<Layout, 'axes'>, readonly string[]> = {
  NHWC: ['image', 'row', 'column', 'channel'],
  NCHW: ['image', 'channel', 'row', 'column'],
  filter: ['tap row', 'tap column', 'in channel', 'out channel'],
};

/** Layouts that make sense for a rank, the free choice last. */
export function layoutsOf(rank: number): Layout[] {
  return rank === 4 ? ['NHWC', 'NCHW', 'filter', 'axes'] : ['axes'];
}

/** Axes along which there is something to see. */
function longAxes(shape: Index): number[] {
  return shape.flatMap((size, axis) => (size > 1 ? [axis] : []));
}

/** What a four-axis tensor probably is. The pin's name wins over the shape. */
export function guessLayout(shape: Index, name = ''): Layout {
  const [a = 0, b = 0, c = 0, d = 0] = shape;
  if (shape.length !== 4) return 'axes';
  if (/filter|kernel|weight/i.test(name)) return 'filter';
  const long = longAxes(shape);
  if (long.length > 0 && long.length <= 2) {
    // Hand-sized: whatever shows every number on one picture.
    const order: Layout[] = c === d ? ['NHWC', 'NCHW', 'filter'] : ['NHWC', 'filter', 'NCHW'];
    return order.find((layout) => long.every((axis) => shownAxes(shape, layout).includes(axis))) ?? 'axes';
  }
  if (b === c) return a === b && b > 1 && b % 2 === 1 && d !== b ? 'filter' : 'NHWC';
  if (c === d && !(a === b && a > 1)) return 'NCHW';
  // Square, small and leading: taps. A batch as large as its rows is rarer.
  if (a === b && a <= 11 && !(a === 1 && d <= 4)) return 'filter';
  return 'NHWC';
}

/** Names of the axes under a layout. */
export function axisNames(shape: Index, layout: Layout): string[] {
  if (layout !== 'axes' && shape.length === 4) return [...NAMES[layout]];
  return shape.map((_, axis) => `axis ${axis}`);
}

function shownAxes(shape: Index, layout: Layout): readonly [number | null, number | null] {
  const rank = shape.length;
  if (rank === 0) return [null, null];
  if (rank === 1) return [null, 0];
  if (rank === 4) {
    if (layout === 'NHWC') return [1, 2];
    if (layout === 'NCHW') return [2, 3];
    // A filter of one tap is a matrix from in to out channels.
    if (layout === 'filter') return (shape[0] ?? 1) * (shape[1] ?? 1) === 1 ? [2, 3] : [0, 1];
  }
  const [first, second, ...more] = longAxes(shape);
  if (first !== undefined && more.length === 0) {
    if (second !== undefined) return [first, second];
    return first === 0 ? [0, 1] : [first - 1, first];
  }
  const last = shape[rank - 1] ?? 1;
  // A short last axis of three or more is channels: show the plane before it.
  if (rank >= 3 && last <= 4 && (shape[rank - 2] ?? 1) > last) return [rank - 3, rank - 2];
  return [rank - 2, rank - 1];
}

/** The first slice to show. Positions of `previous` are kept where they still exist. */
export function firstSlice(shape: Index, layout: Layout, previous: Index = []): Slice {
  const [rows, cols] = shownAxes(shape, layout);
  const at = shape.map((size, axis) => clamp(previous[axis] ?? 0, 0, Math.max(0, size - 1)));
  return { rows, cols, at };
}

/** The slice a view starts with: a tensor with one axis longer than 1 lies down, which a block has room for. */
export function glanceSlice(shape: Index, layout: Layout): Slice {
  const slice = firstSlice(shape, layout);
  const [only, ...more] = longAxes(shape);
  return only === undefined || more.length > 0 ? slice : { ...slice, rows: null, cols: only };
}

/** Show another axis as rows or columns; a clash swaps the two. */
export function chooseAxis(slice: Slice, which: 'rows' | 'cols', axis: number): Slice {
  const other = which === 'rows' ? 'cols' : 'rows';
  const swapped = slice[other] === axis ? { [other]: slice[which] } : {};
  return { ...slice, ...swapped, [which]: axis };
}

/** Axes that need a slider: not shown, and longer than one. */
export function sliderAxes(shape: Index, slice: Slice): number[] {
  return shape.flatMap((size, axis) => (axis !== slice.rows && axis !== slice.cols && size > 1 ? [axis] : []));
}

export function moveSlider(slice: Slice, axis: number, position: number): Slice {
  return { ...slice, at: slice.at.map((old, other) => (other === axis ? position : old)) };
}

/** Rows and columns of the picture. */
export function extentOf(shape: Index, slice: Slice): { rows: number; cols: number } {
  return {
    rows: slice.rows === null ? 1 : (shape[slice.rows] ?? 1),
    cols: slice.cols === null ? 1 : (shape[slice.cols] ?? 1),
  };
}

/** Index in the tensor of a cell of the picture. */
export function indexOf(slice: Slice, row: number, col: number): number[] {
  return slice.at.map((at, axis) => (axis === slice.rows ? row : axis === slice.cols ? col : at));
}

/** Cell of the picture of an index, or null if another slice holds it. */
export function cellOf(slice: Slice, index: Index): { row: number; col: number } | null {
  if (index.length !== slice.at.length) return null;
  const shown = (axis: number) => axis === slice.rows || axis === slice.cols;
  if (index.some((at, axis) => !shown(axis) && at !== slice.at[axis])) return null;
  return {
    row: slice.rows === null ? 0 : (index[slice.rows] ?? 0),
    col: slice.cols === null ? 0 : (index[slice.cols] ?? 0),
  };
}

/** The slice that shows an index, the same one if it already does. */
export function sliceShowing(slice: Slice, index: Index): Slice {
  if (index.length !== slice.at.length || cellOf(slice, index)) return slice;
  return { ...slice, at: index };
}

/** The numbers of a slice, row by row. */
export function takeSlice(data: ArrayLike<number>, shape: Index, slice: Slice): Float64Array {
  const { rows, cols } = extentOf(shape, slice);
  const strides = stridesOf(shape);
  const down = slice.rows === null ? 0 : (strides[slice.rows] ?? 0);
  const right = slice.cols === null ? 0 : (strides[slice.cols] ?? 0);
  const start = ravel(indexOf(slice, 0, 0), shape);
  const out = new Float64Array(rows * cols);
  for (let row = 0; row < rows; row += 1) {
    for (let col = 0; col < cols; col += 1) {
      out[row * cols + col] = data[start + row * down + col * right] ?? Number.NaN;
    }
  }
  return out;
}
