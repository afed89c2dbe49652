// Numbers of a tensor on a pin, for the grid one draws on.

import type { Tensor } from '../api/types';

const WIDTHS: Record<string, [number, (view: DataView, at: number) => number]> = {
  DT_FLOAT: [4, (view, at) => view.getFloat32(at, true)],
  DT_DOUBLE: [8, (view, at) => view.getFloat64(at, true)],
  DT_INT32: [4, (view, at) => view.getInt32(at, true)],
  DT_INT64: [8, (view, at) => Number(view.getBigInt64(at, true))],
  DT_UINT8: [1, (view, at) => view.getUint8(at)],
  DT_INT8: [1, (view, at) => view.getInt8(at)],
};

export const countOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** The numbers of a tensor; null for a dtype the grid does not draw. */
export function numbersOf(tensor: Tensor): number[] | null {
  if (tensor.data) return tensor.data;
  const width = WIDTHS[tensor.dtype];
  if (!width || tensor.base64 === undefined) return null;
  const bytes = Uint8Array.from(atob(tensor.base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: Math.floor(bytes.length / width[0]) }, (_, i) => width[1](view, i * width[0]));
}

export interface Plane {
  rows: number;
  columns: number;
  /** Sizes of the dimensions that choose a plane. */
  others: number[];
  /** Where a cell stands among the numbers. */
  at: (plane: number, row: number, column: number) => number;
}

/** A tensor as planes: rank 2 is one, rank 3 and 4 are height by width with channels last (NHWC, HWC). */
export function planesOf(shape: readonly number[]): Plane | null {
  const rank = shape.length;
  if (rank < 2 || rank > 4) return null;
  const [batch, rows, columns, channels] =
    rank === 2 ? [1, shape[0] ?? 0, shape[1] ?? 0, 1]
    : rank === 3 ? [1, shape[0] ?? 0, shape[1] ?? 0, shape[2] ?? 0]
    : [shape[0] ?? 0, shape[1] ?? 0, shape[2] ?? 0, shape[3] ?? 0];
  return {
    rows, columns, others: [batch, channels],
    at: (plane, row, column) => ((Math.floor(plane / channels) * rows + row) * columns + column) * channels + (plane % channels),
  };
}
