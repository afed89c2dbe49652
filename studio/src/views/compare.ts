// Two tensors side by side: where they differ and by how much.

import { sizeOf, unravel, type Index } from './indices';

export interface Numbers {
  shape: Index;
  data: ArrayLike<number>;
}

export interface Difference {
  value: number;
  index: number[];
  a: number;
  b: number;
}

export interface Comparison {
  /** null if the tensors can be compared, else the reason. */
  problem: string | null;
  cells: number;
  differing: number;
  /** Cells where only one side is NaN or infinite, or the infinities differ. */
  strange: number;
  absolute: Difference | null;
  relative: Difference | null;
  /** a - b; NaN where the cell is strange. */
  difference: Float64Array;
}

/** a - b, with equal infinities and two NaN taken as equal. */
function subtract(a: number, b: number): number {
  if (Object.is(a, b) || a === b) return 0;
  const difference = a - b;
  return Number.isFinite(a) && Number.isFinite(b) ? difference : Number.NaN;
}

/** |a - b| over the larger of |a| and |b|: symmetric, between 0 and 2, and 0 for equal cells. */
export function relativeDifference(a: number, b: number): number {
  const difference = Math.abs(subtract(a, b));
  return difference === 0 ? 0 : difference / Math.max(Math.abs(a), Math.abs(b));
}

export function compare(a: Numbers, b: Numbers): Comparison {
  const same = a.shape.length === b.shape.length && a.shape.every((size, at) => size === b.shape[at]);
  const cells = same ? sizeOf(a.shape) : 0;
  const result: Comparison = {
    problem: same ? null : `shapes differ: [${a.shape.join(', ')}] and [${b.shape.join(', ')}]`,
    cells,
    differing: 0,
    strange: 0,
    absolute: null,
    relative: null,
    difference: new Float64Array(cells),
  };
  let absoluteAt = -1;
  let relativeAt = -1;
  let absolute = 0;
  let relative = 0;
  for (let at = 0; at < cells; at += 1) {
    const left = a.data[at] ?? Number.NaN;
    const right = b.data[at] ?? Number.NaN;
    const difference = subtract(left, right);
    result.difference[at] = difference;
    if (difference === 0) continue;
    result.differing += 1;
    if (Number.isNaN(difference)) {
      result.strange += 1;
      continue;
    }
    if (Math.abs(difference) > absolute) {
      absolute = Math.abs(difference);
      absoluteAt = at;
    }
    const share = relativeDifference(left, right);
    if (share > relative) {
      relative = share;
      relativeAt = at;
    }
  }
  const found = (at: number, value: number): Difference | null =>
    at < 0 ? null : { value, index: unravel(at, a.shape), a: a.data[at] ?? Number.NaN, b: b.data[at] ?? Number.NaN };
  result.absolute = found(absoluteAt, absolute);
  result.relative = found(relativeAt, relative);
  return result;
}
