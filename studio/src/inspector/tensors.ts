// Numbers of a tensor on a pin, for the grid one draws on.

import type { Tensor } from '../api/types';

const WIDTHS = new Map<string, [number, (view: DataView, at: number) => number]>([
  ['DT_FLOAT', [4, (view, at) => view.getFloat32(at, true)]],
  ['DT_DOUBLE', [8, (view, at) => view.getFloat64(at, true)]],
  ['DT_INT32', [4, (view, at) => view.getInt32(at, true)]],
  ['DT_INT64', [8, (view, at) => Number(view.getBigInt64(at, true))]],
  ['DT_UINT8', [1, (view, at) => view.getUint8(at)]],
  ['DT_INT8', [1, (view, at) => view.getInt8(at)]],
]);

export const countOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** The numbers of a tensor; null for a dtype the grid does not draw. */
export function numbersOf(tensor: Tensor): number[] | null {
  if (tensor.data) return tensor.data.every((item) => typeof item === 'number') ? tensor.data : null;
  const width = WIDTHS.get(tensor.dtype);
  if (!width || tensor.base64 === undefined) return null;
  const bytes = Uint8Array.from(atob(tensor.base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: Math.floor(bytes.length / width[0]) }, (_, i) => width[1](view, i * width[0]));
}
