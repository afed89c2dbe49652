// On a large page an edit is told about at once by checking the part it concerns, or the nearest of it if that is much;
// the whole page follows when the hands rest. What is said of a part holds: whatever its blocks are made from is in it.

import type { Page } from '../api/types';
import { idsOf, wiresOf } from './page';

const SMALL = 100;
/** Blocks behind an edit that are told about first: more than are read at a glance. */
const NEAR = 32;

function walk(starts: Iterable<string>, next: ReadonlyMap<string, string[]>): Set<string> {
  const found = new Set(starts);
  for (const id of found) for (const other of next.get(id) ?? []) found.add(other);
  return found;
}

/** Blocks whose texts or wires differ between two pages. */
export function changedIds(now: Page, before: Page): Set<string> {
  const old = idsOf(before);
  const ids = new Set<string>();
  for (const block of now.blocks) {
    const was = old.get(block.id);
    if (was !== block && (was?.pins !== block.pins || was?.type !== block.type)) ids.add(block.id);
  }
  if (wiresOf(now) !== wiresOf(before)) {
    const [kept, had] = [new Set(wiresOf(now)), new Set(wiresOf(before))];
    for (const wire of wiresOf(now)) if (!had.has(wire)) ids.add(wire.to[0]);
    for (const wire of wiresOf(before)) if (!kept.has(wire)) ids.add(wire.to[0]);
  }
  return ids;
}

/** A block and all it is made from, as a page. */
export function madeFrom(page: Page, id: string): Page {
  const into = new Map<string, string[]>();
  for (const { from, to } of wiresOf(page)) into.set(to[0], [...(into.get(to[0]) ?? []), from[0]]);
  return within(page, walk([id], into));
}

function within(page: Page, ids: ReadonlySet<string>): Page {
  return {
    ...page,
    blocks: page.blocks.filter((block) => ids.has(block.id)),
    wires: wiresOf(page).filter(({ from, to }) => ids.has(from[0]) && ids.has(to[0])),
  };
}

export interface Part {
  page: Page;
  /** Whether nothing else on the page can have changed. */
  all: boolean;
}

/** The blocks behind an edit, the nearest first, and all they are made from, as a page; null if that is the whole page. */
export function partOf(now: Page, before: Page): Part | null {
  if (now.blocks.length < SMALL || now.dialect !== before.dialect) return null;
  const [after, into] = [new Map<string, string[]>(), new Map<string, string[]>()];
  const put = (map: Map<string, string[]>, from: string, to: string) => {
    const list = map.get(from);
    if (list) list.push(to);
    else map.set(from, [to]);
  };
  for (const { from, to } of wiresOf(now)) {
    put(after, from[0], to[0]);
    put(into, to[0], from[0]);
  }
  const present = idsOf(now);
  const starts = [...changedIds(now, before)].filter((id) => present.has(id));
  const behind = walk(starts, after);
  const near = [...behind].slice(0, Math.max(NEAR, starts.length));
  const ids = walk(near, into);
  if (!ids.size || ids.size > now.blocks.length / 2) return null;
  return { page: within(now, ids), all: near.length === behind.size };
}
