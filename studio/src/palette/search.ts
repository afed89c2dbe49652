// Finding blocks by what people type: the start of the name, then any part of it, then the summary.

import type { PaletteRow } from '../api/types';

function rank(row: PaletteRow, words: string[]): number {
  const name = row.type.toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (name === word) sum += 0;
    else if (name.startsWith(word)) sum += 1;
    else if (name.includes(word)) sum += 2;
    else if (row.group.toLowerCase().includes(word)) sum += 4;
    else if (row.summary.toLowerCase().includes(word)) sum += 8;
    else return Infinity;
  }
  return sum;
}

/** Rows that match all words, best first; all rows, as they stand, for no words. */
export function found(rows: Iterable<PaletteRow>, text: string): PaletteRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...rows];
  if (!words.length) return all;
  const ranked = all.map((row) => ({ row, rank: rank(row, words) })).filter((each) => each.rank < Infinity);
  return ranked.sort((a, b) => a.rank - b.rank).map((each) => each.row);
}

/** Rows by group, groups in the order they first appear. */
export function grouped(rows: PaletteRow[]): [string, PaletteRow[]][] {
  const groups = new Map<string, PaletteRow[]>();
  for (const row of rows) groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  return [...groups];
}
