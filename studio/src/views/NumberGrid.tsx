// A slice of a tensor as numbers. Only what is in sight is in the document, whatever the size.

import { useMemo, useState, type KeyboardEvent } from 'react';
import { extentOf, indexOf, takeSlice, type Slice } from './axes';
import { moveCell, ravel, sameIndex, type Cell, type Index } from './indices';
import { formatNumber, widestText } from './numbers';
import { useWidth } from './useSize';
import { numbersIn, useWindow } from './useWindow';

interface Props {
  shape: Index;
  data: ArrayLike<number>;
  slice: Slice;
  marked?: readonly Index[];
  current?: Index | null;
  compact?: boolean;
  label: string;
  onHoverCell?: ((index: number[] | null) => void) | undefined;
  onPickCell?: ((index: number[]) => void) | undefined;
}

const ROW = 22;
const HEAD = 36;

export function NumberGrid(props: Props) {
  const { shape, data, slice, marked = [], current = null, compact = false } = props;
  const { rows, cols } = extentOf(shape, slice);
  const digits = compact ? 4 : 6;
  const column = useMemo(
    () => widestText(takeSlice(data, shape, slice), digits) * (compact ? 6.7 : 7.3) + 14,
    [data, shape, slice, digits, compact],
  );
  const [box, width] = useWidth<HTMLDivElement>(compact ? 170 : 420);
  const height = Math.min(compact ? 132 : 360, (rows + 1) * ROW + 2);
  const grid = useWindow(rows, cols, ROW, column, height, width);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const marks = new Set(marked.map((index) => index.join()));

  const go = (next: Cell | null) => {
    setCursor(next);
    props.onHoverCell?.(next && indexOf(slice, next.row, next.col));
  };
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const next = moveCell(cursor ?? { row: 0, col: 0 }, event.key, rows, cols);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    go(cursor ? next : { row: 0, col: 0 });
    // Keep the cell in sight.
    const { row, col } = cursor ? next : { row: 0, col: 0 };
    const view = event.currentTarget;
    view.scrollTop = Math.min(Math.max(view.scrollTop, (row + 2) * ROW - height), row * ROW);
    view.scrollLeft = Math.min(Math.max(view.scrollLeft, (col + 1) * column + HEAD - width), col * column);
  };
  const cellOf = (row: number, col: number) => {
    const index = indexOf(slice, row, col);
    const value = data[ravel(index, shape)];
    const classes = [
      'v-number',
      marks.has(index.join()) && 'v-marked',
      sameIndex(index, current) && 'v-current',
      cursor?.row === row && cursor.col === col && 'v-cursor',
      value !== undefined && !Number.isFinite(value) && 'v-bad',
    ];
    return (
      <span
        key={col}
        role="gridcell"
        aria-colindex={col + 1}
        className={classes.filter(Boolean).join(' ')}
        style={{ left: HEAD + col * column, width: column }}
        onPointerEnter={() => go({ row, col })}
        onClick={() => props.onPickCell?.(index)}
      >
        {formatNumber(value, digits)}
      </span>
    );
  };
  return (
    <div
      ref={box}
      className="v-grid nodrag nowheel"
      style={{ height }}
      tabIndex={0}
      role="grid"
      aria-label={`${props.label}, numbers`}
      aria-rowcount={rows}
      aria-colcount={cols}
      onScroll={grid.onScroll}
      onKeyDown={onKey}
      onPointerLeave={() => go(null)}
    >
      <div style={{ height: (rows + 1) * ROW, width: HEAD + cols * column, minWidth: '100%', position: 'relative' }}>
        <div className="v-head" style={{ height: ROW }}>
          {numbersIn(grid.cols).map((col) => (
            <span key={col} style={{ left: HEAD + col * column, width: column }}>
              {col}
            </span>
          ))}
        </div>
        {numbersIn(grid.rows).map((row) => (
          <div
            key={row}
            role="row"
            aria-rowindex={row + 1}
            className="v-row"
            style={{ top: (row + 1) * ROW, height: ROW }}
          >
            <span className="v-rowhead" style={{ width: HEAD }}>
              {row}
            </span>
            {numbersIn(grid.cols).map((col) => cellOf(row, col))}
          </div>
        ))}
      </div>
    </div>
  );
}
