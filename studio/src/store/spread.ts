// Making room: pages drawn for smaller blocks, and blocks that grew by their results, are moved apart. Who stood left
// of or above whom still does.

import type { Page } from '../api/types';
import type { Size } from './arrange';
import { moveTo, snap, wiresOf } from './page';

const GAP = 24;
/** Between two blocks with a wire, so that its shape can be read. */
const WIRE_ROOM = 120;
const MOST_STRETCH = 3;

interface Box extends Size {
  id: string;
  x: number;
  y: number;
}

function boxesOf(page: Page, sizes: ReadonlyMap<string, Size>): Box[] {
  return page.blocks.flatMap(({ id, at }) => {
    const size = sizes.get(id);
    return size ? [{ id, x: at?.[0] ?? 0, y: at?.[1] ?? 0, width: size.width, height: size.height }] : [];
  });
}

const across = (a: Box, b: Box): boolean => a.x < b.x + b.width && b.x < a.x + a.width;
const meet = (a: Box, b: Box): boolean => across(a, b) && a.y < b.y + b.height && b.y < a.y + a.height;

export function overlaps(page: Page, sizes: ReadonlyMap<string, Size>): boolean {
  const boxes = boxesOf(page, sizes).sort((a, b) => a.x - b.x);
  return boxes.some((a, i) => {
    for (let j = i + 1; j < boxes.length; j++) {
      const b = boxes[j];
      if (!b || b.x >= a.x + a.width) return false;
      if (meet(a, b)) return true;
    }
    return false;
  });
}

/** How much wider a page must be for the labels of its wires. */
function stretch(page: Page, boxes: ReadonlyMap<string, Box>): number {
  let factor = 1;
  for (const { from, to } of wiresOf(page)) {
    const [source, target] = [boxes.get(from[0]), boxes.get(to[0])];
    const step = source && target ? target.x - source.x : 0;
    if (source && step > source.width / 3) factor = Math.max(factor, (source.width + WIRE_ROOM) / step);
  }
  return Math.min(factor, MOST_STRETCH);
}

/** Whether the label of a wire has no room between its blocks. */
export function cramped(page: Page, sizes: ReadonlyMap<string, Size>): boolean {
  return stretch(page, new Map(boxesOf(page, sizes).map((box) => [box.id, box]))) > 1;
}

/** Move blocks apart: wider where wires are short, then downwards where blocks meet. */
export function spread(page: Page, sizes: ReadonlyMap<string, Size>, wider: boolean): Page {
  const boxes = boxesOf(page, sizes);
  const factor = wider ? stretch(page, new Map(boxes.map((box) => [box.id, box]))) : 1;
  const left = Math.min(...boxes.map((box) => box.x));
  for (const box of boxes) if (factor > 1) box.x = snap(left + (box.x - left) * factor);
  const placed: Box[] = [];
  for (const box of boxes.sort((a, b) => a.y - b.y || a.x - b.x)) {
    for (let again = true; again; ) {
      const under = placed.find((other) => meet({ ...other, height: other.height + GAP }, box));
      again = under !== undefined;
      if (under) box.y = snap(under.y + under.height + GAP + 4);
    }
    placed.push(box);
  }
  return moveTo(page, new Map(boxes.map((box): [string, [number, number]] => [box.id, [box.x, box.y]])));
}
