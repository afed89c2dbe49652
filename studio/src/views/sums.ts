// How the terms of a traced cell combine, and the partial results while one steps through them.

export type Combine = 'sum' | 'mean' | 'maximum' | 'none';

export interface Product {
  product: number | null;
}

const close = (a: number, b: number) => Math.abs(a - b) <= 1e-5 * Math.max(1e-30, Math.abs(a), Math.abs(b));

/** Partial sums after each term. A term that is not finite (null) makes the rest NaN. */
export function runningSums(terms: readonly Product[]): number[] {
  let total = 0;
  return terms.map((term) => (total += term.product ?? Number.NaN));
}

/** Largest product so far. */
export function runningMaxima(terms: readonly Product[]): number[] {
  let largest = -Infinity;
  return terms.map((term) => (largest = Math.max(largest, term.product ?? Number.NaN)));
}

/** What the server's total is of the terms: their sum unless only another reading fits. */
export function combineOf(terms: readonly Product[], total: number | null, whole: boolean): Combine {
  if (terms.length === 0) return 'none';
  // With terms left out nothing can be compared; sums are what long lists are.
  if (!whole || total === null) return 'sum';
  const sum = runningSums(terms).at(-1) ?? 0;
  const scale = terms.reduce((size, term) => size + Math.abs(term.product ?? 0), 0);
  if (Math.abs(sum - total) <= 1e-5 * scale + 1e-30 || close(sum, total)) return 'sum';
  if (close(runningMaxima(terms).at(-1) ?? 0, total)) return 'maximum';
  if (close(sum / terms.length, total)) return 'mean';
  return 'sum';
}

export function runningValues(terms: readonly Product[], combine: Combine): number[] {
  if (combine === 'maximum') return runningMaxima(terms);
  if (combine === 'mean') return runningSums(terms).map((sum, at) => sum / (at + 1));
  return runningSums(terms);
}
