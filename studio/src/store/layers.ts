// Laying a page out anew: what a block needs stands left of it, and blocks that belong together stand side by side.

import type { Page } from '../api/types';
import type { Size } from './arrange';
import { idsOf, moveTo, snap, wiresOf } from './page';

const GAP = 32;
const WIRE_ROOM = 120;
const SWEEPS = 6;
const UNKNOWN: Size = { width: 240, height: 120 };

function neighbours(page: Page, way: 'in' | 'out'): Map<string, string[]> {
  const found = new Map<string, string[]>(page.blocks.map((block) => [block.id, []]));
  for (const { from, to } of wiresOf(page)) {
    const [here, there] = way === 'in' ? [to[0], from[0]] : [from[0], to[0]];
    if (here !== there) found.get(here)?.push(there);
  }
  return found;
}

/** The column of every block: one more than the last it needs. Blocks in a circle stand after what is known of them. */
export function columnsOf(page: Page): Map<string, number> {
  const [into, out] = [neighbours(page, 'in'), neighbours(page, 'out')];
  const left = new Map([...into].map(([id, list]) => [id, list.length]));
  const column = new Map<string, number>(page.blocks.map((block) => [block.id, 0]));
  const ready = page.blocks.map((block) => block.id).filter((id) => left.get(id) === 0);
  for (const id of ready)
    for (const next of out.get(id) ?? []) {
      column.set(next, Math.max(column.get(next) ?? 0, (column.get(id) ?? 0) + 1));
      left.set(next, (left.get(next) ?? 0) - 1);
      if (left.get(next) === 0) ready.push(next);
    }
  // What needs nothing stands close to what needs it.
  for (const [id, list] of into) {
    const users = (out.get(id) ?? []).map((user) => column.get(user) ?? 0);
    if (!list.length && users.length) column.set(id, Math.max(0, Math.min(...users) - 1));
  }
  return column;
}

export function layered(page: Page, sizes: ReadonlyMap<string, Size>): Page {
  const size = (id: string): Size => sizes.get(id) ?? UNKNOWN;
  const columns: string[][] = [];
  const top = (id: string) => idsOf(page).get(id)?.at?.[1] ?? 0;
  for (const [id, at] of columnsOf(page)) (columns[at] ??= []).push(id);
  const middle = new Map<string, number>();
  const stack = (list: string[]) => {
    const height = list.reduce((sum, id) => sum + size(id).height + GAP, -GAP);
    let y = -height / 2;
    for (const id of list) {
      middle.set(id, y + size(id).height / 2);
      y += size(id).height + GAP;
    }
  };
  for (const list of columns) if (list) stack(list.sort((a, b) => top(a) - top(b)));
  const [into, out] = [neighbours(page, 'in'), neighbours(page, 'out')];
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? out : into;
    const pull = (id: string) => {
      const list = near.get(id) ?? [];
      return list.length ? list.reduce((sum, other) => sum + (middle.get(other) ?? 0), 0) / list.length : (middle.get(id) ?? 0);
    };
    for (const list of sweep % 2 ? [...columns].reverse() : columns) {
      const wish = new Map((list ?? []).map((id) => [id, pull(id)]));
      stack(list?.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0)) ?? []);
    }
  }
  const places = new Map<string, [number, number]>();
  let x = 0;
  for (const list of columns) {
    for (const id of list ?? []) places.set(id, [snap(x), snap((middle.get(id) ?? 0) - size(id).height / 2)]);
    x += Math.max(0, ...(list ?? []).map((id) => size(id).width)) + WIRE_ROOM;
  }
  return moveTo(page, places);
}
