// How the terms of a traced cell combine, and the partial results while one steps through them.

export type Combine = 'sum' | 'maximum' | 'none';

export interface Product {
  product: number | null;
  padding?: boolean;
}

const close = (a: number, b: number) => Math.abs(a - b) <= 1e-5 * Math.max(Math.abs(a), Math.abs(b));

/** Partial sums after each term. A term that is not finite (null) makes the rest NaN. */
export function runningSums(terms: readonly Product[]): number[] {
  let total = 0;
  return terms.map((term) => (total += term.product ?? Number.NaN));
}

/** Largest term so far; padding is never the largest. */
export function runningMaxima(terms: readonly Product[]): number[] {
  let largest = -Infinity;
  return terms.map((term) => (term.padding ? largest : (largest = Math.max(largest, term.product ?? Number.NaN))));
}

/**
 * What the cell is of its terms. The server sends their sum, or null: either it is not finite, which
 * a term then shows, or the cell is no sum. Then it may be the largest term, as in a pooling.
 */
export function combineOf(terms: readonly Product[], sum: number | null, value: number | null): Combine {
  if (terms.length === 0) return 'none';
  if (sum !== null || terms.some((term) => term.product === null)) return 'sum';
  const largest = runningMaxima(terms).at(-1) ?? Number.NaN;
  return value !== null && close(largest, value) ? 'maximum' : 'none';
}

/** Partial results after each term; none where a cell is neither a sum nor a maximum. */
export function runningValues(terms: readonly Product[], combine: Combine): number[] {
  if (combine === 'none') return [];
  return combine === 'maximum' ? runningMaxima(terms) : runningSums(terms);
}

/** Whether terms are more than the values they are made of: products, squares, shares of a mean. */
export function worthShowing(terms: readonly (Product & { parts: readonly { value: number | null }[] })[]): boolean {
  return terms.some((term) => term.parts.length > 1 || term.parts[0]?.value !== term.product);
}
