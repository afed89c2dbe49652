// Aligning and distributing blocks.

import type { Page } from '../api/types';
import { moveTo } from './page';

export interface Size {
  width: number;
  height: number;
}

export type Alignment = 'left' | 'right' | 'top' | 'bottom' | 'centre' | 'middle';
type Box = { id: string; x: number; y: number } & Size;

function boxes(page: Page, ids: ReadonlySet<string>, sizes: ReadonlyMap<string, Size>): Box[] {
  return page.blocks
    .filter((block) => ids.has(block.id))
    .map(({ id, at = [0, 0] }) => ({ id, x: at[0], y: at[1], ...(sizes.get(id) ?? { width: 200, height: 100 }) }));
}

export function align(page: Page, ids: ReadonlySet<string>, sizes: ReadonlyMap<string, Size>, to: Alignment): Page {
  const all = boxes(page, ids, sizes);
  if (all.length < 2) return page;
  const left = Math.min(...all.map((box) => box.x));
  const right = Math.max(...all.map((box) => box.x + box.width));
  const top = Math.min(...all.map((box) => box.y));
  const bottom = Math.max(...all.map((box) => box.y + box.height));
  const place = (box: Box): [number, number] => {
    switch (to) {
      case 'left': return [left, box.y];
      case 'right': return [right - box.width, box.y];
      case 'centre': return [(left + right - box.width) / 2, box.y];
      case 'top': return [box.x, top];
      case 'bottom': return [box.x, bottom - box.height];
      case 'middle': return [box.x, (top + bottom - box.height) / 2];
    }
  };
  return moveTo(page, new Map(all.map((box) => [box.id, place(box)])));
}

/** Make the gaps between blocks equal; the two outermost stay. */
export function distribute(
  page: Page, ids: ReadonlySet<string>, sizes: ReadonlyMap<string, Size>, along: 'across' | 'down',
): Page {
  const flat = along === 'across';
  const start = (box: Box) => (flat ? box.x : box.y);
  const length = (box: Box) => (flat ? box.width : box.height);
  const all = boxes(page, ids, sizes).sort((a, b) => start(a) - start(b));
  const [first, last] = [all[0], all.at(-1)];
  if (!first || !last || all.length < 3) return page;
  const inner = all.reduce((sum, box) => sum + length(box), 0);
  const gap = (start(last) + length(last) - start(first) - inner) / (all.length - 1);
  const places = new Map<string, [number, number]>();
  let at = start(first);
  for (const box of all) {
    places.set(box.id, flat ? [at, box.y] : [box.x, at]);
    at += length(box) + gap;
  }
  return moveTo(page, places);
}
