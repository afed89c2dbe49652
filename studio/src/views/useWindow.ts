// Rows (and columns) of a long table that are worth having in the document.

import { useState, type UIEvent } from 'react';
import { visibleRange, type Range } from './indices';

interface Grid {
  rows: Range;
  cols: Range;
  onScroll: (event: UIEvent<HTMLElement>) => void;
}

export function useWindow(
  rows: number,
  cols: number,
  rowHeight: number,
  colWidth: number,
  height: number,
  width: number,
): Grid {
  const [scroll, setScroll] = useState({ top: 0, left: 0 });
  return {
    rows: visibleRange(scroll.top, height, rowHeight, rows),
    cols: visibleRange(scroll.left, width, colWidth, cols),
    onScroll: (event) => setScroll({ top: event.currentTarget.scrollTop, left: event.currentTarget.scrollLeft }),
  };
}

export function numbersIn({ start, end }: Range): number[] {
  return Array.from({ length: end - start }, (_, step) => start + step);
}
