// Words for shapes, dtypes and times.

import type { PinValue, Tensor, TensorSpec } from './api/types';

const SHORT = new Map([['DT_FLOAT', 'float'], ['DT_DOUBLE', 'double'], ['DT_HALF', 'half']]);

export const dtypeText = (dtype: string): string => SHORT.get(dtype) ?? dtype.replace(/^DT_/, '').toLowerCase();

export function shapeText(shape: readonly (number | null)[] | null): string {
  if (shape === null) return '?';
  return shape.length ? shape.map((size) => size ?? '?').join('×') : 'scalar';
}

export const specText = (spec: TensorSpec): string => `${dtypeText(spec.dtype)} ${shapeText(spec.shape)}`;

export function timeText(ms: number): string {
  if (ms < 0.1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

export const isTensor = (value: PinValue | undefined): value is Tensor =>
  typeof value === 'object' && Object.hasOwn(value, 'dtype');

/** The text on a pin, as it was typed. */
export function textOf(value: PinValue | undefined): string {
  if (value === undefined || isTensor(value)) return '';
  return typeof value === 'string' ? value : value.text;
}
