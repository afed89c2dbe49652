// Cells that one view asks the others to outline.

import type { Highlight, TraceTerm } from '../api/types';
import type { Index } from './indices';

/** Cells of one result that take part in a traced cell; `current` is the one of this step. */
export interface Mark extends Highlight {
  current?: number[];
}

/** Marks of all results, or the cells of this one alone. */
export type Marked = readonly Mark[] | readonly (readonly number[])[];

/** The marks of one result. */
export function marksOf(
  marked: Marked | undefined,
  block: string,
  pin: string,
): { cells: readonly Index[]; current: Index | null } {
  const cells: Index[] = [];
  const own: Mark[] = [];
  for (const mark of marked ?? []) {
    if (!('cells' in mark)) cells.push(mark);
    else if (mark.block === block && mark.pin === pin) own.push(mark);
  }
  return {
    cells: [...cells, ...own.flatMap((mark) => mark.cells)],
    current: own.find((mark) => mark.current)?.current ?? null,
  };
}

/** What a traced cell marks: itself, and every input cell of its terms. Padding is no cell. */
export function marksOfTrace(
  block: string,
  pin: string,
  index: Index,
  terms: readonly TraceTerm[],
  step: number | null,
): Mark[] {
  const found = new Map<string, { mark: Mark; seen: Set<string> }>();
  for (const [at, term] of terms.entries()) {
    for (const part of term.parts) {
      if (part.padding || (term.padding && part.index.some((place) => place < 0))) continue;
      // A number typed on the pin has no block to be shown on.
      if (!part.block) continue;
      const key = JSON.stringify([part.block, part.source_pin]);
      const entry = found.get(key) ?? {
        mark: { block: part.block, pin: part.source_pin, cells: [] },
        seen: new Set<string>(),
      };
      found.set(key, entry);
      if (!entry.seen.has(part.index.join())) {
        entry.seen.add(part.index.join());
        entry.mark.cells.push(part.index);
      }
      if (at === step) entry.mark.current = part.index;
    }
  }
  return [{ block, pin, cells: [[...index]] }, ...[...found.values()].map(({ mark }) => mark)];
}

/** The inputs that terms speak of, in the order they appear. */
export function pinsOf(terms: readonly TraceTerm[]): string[] {
  return [...new Set(terms.flatMap((term) => term.parts.map((part) => part.pin)))];
}
