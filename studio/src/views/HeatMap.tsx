// A slice of a tensor as coloured cells. Mouse and arrow keys move over the cells; marks are outlined.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { cellOf, extentOf, indexOf, takeSlice, type Slice } from './axes';
import { extremesOf, scaleFor, type Extremes } from './colours';
import { bitmapOf, draw } from './draw';
import { cellAt, cellSize, moveCell, ravel, type Cell, type Index } from './indices';
import { Legend } from './Legend';
import { formatIndex, formatNumber } from './numbers';
import { useWidth } from './useSize';
import { useZoom } from './zoom';

interface Props {
  shape: Index;
  data: ArrayLike<number>;
  slice: Slice;
  /** Range and odd values of the whole tensor, so that slices share one scale. */
  whole: Extremes;
  marked?: readonly Index[];
  current?: Index | null;
  /** True to scale the colours by this slice alone. */
  local?: boolean;
  compact?: boolean;
  /** What the picture shows, for those who cannot see it. */
  label: string;
  onHoverCell?: ((index: number[] | null) => void) | undefined;
  onPickCell?: ((index: number[]) => void) | undefined;
}

const NO_CELLS: readonly Index[] = [];

export function HeatMap(props: Props) {
  const { shape, data, slice, whole, marked = NO_CELLS, current = null, local = false, compact = false } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [box, width] = useWidth<HTMLDivElement>(compact ? 170 : 420);
  const zoom = useZoom(compact);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const { rows, cols } = extentOf(shape, slice);
  const numbers = useMemo(() => takeSlice(data, shape, slice), [data, shape, slice]);
  const scale = useMemo(() => {
    const range = local ? extremesOf(numbers) : whole;
    return scaleFor(range.low, range.high);
  }, [local, numbers, whole]);
  const bitmap = useMemo(() => bitmapOf(numbers, rows, cols, scale), [numbers, rows, cols, scale]);
  const cell = useMemo(
    () => cellSize(rows, cols, width, compact ? 170 : 420, compact ? 38 : 56),
    [rows, cols, width, compact],
  );
  const shown = useMemo(() => marked.flatMap((index) => cellOf(slice, index) ?? []), [marked, slice]);
  const strong = useMemo(() => current && cellOf(slice, current), [current, slice]);
  const at = cursor && cursor.row < rows && cursor.col < cols ? cursor : null;

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const accent = (style.getPropertyValue('--mark') || style.getPropertyValue('--accent')).trim() || '#ff7a00';
    draw(element, bitmap, { numbers, rows, cols, cell, scale, marked: shown, current: strong, cursor: at, accent, zoom });
  }, [bitmap, numbers, rows, cols, cell, scale, shown, strong, at, zoom]);

  const go = (next: Cell | null) => {
    if (next?.row === at?.row && next?.col === at?.col) return;
    setCursor(next);
    props.onHoverCell?.(next && indexOf(slice, next.row, next.col));
  };
  const onPointer = (event: PointerEvent<HTMLCanvasElement>) => {
    // The canvas may be zoomed with the page of blocks: measure it as it is drawn.
    const frame = event.currentTarget.getBoundingClientRect();
    const zoom = frame.width / Math.max(1, cols * cell.wide) || 1;
    go(cellAt((event.clientX - frame.left) / zoom, (event.clientY - frame.top) / zoom, cell, rows, cols));
  };
  const onKey = (event: KeyboardEvent) => {
    const next = moveCell(at ?? { row: 0, col: 0 }, event.key, rows, cols);
    if (next) {
      event.preventDefault();
      // The arrows would move the block as well.
      event.stopPropagation();
      go(at ? next : { row: 0, col: 0 });
    } else if ((event.key === 'Enter' || event.key === ' ') && at) {
      event.preventDefault();
      event.stopPropagation();
      props.onPickCell?.(indexOf(slice, at.row, at.col));
    } else if (event.key === 'Escape' && at) go(null);
  };
  const index = at && indexOf(slice, at.row, at.col);
  return (
    <div className="v-heat" ref={box}>
      <div className="v-scroll">
        <canvas
          ref={canvas}
          className="v-canvas nodrag"
          tabIndex={0}
          role="img"
          aria-label={`${props.label}, heat map of ${rows} by ${cols} cells`}
          onPointerMove={onPointer}
          onPointerLeave={() => go(null)}
          onClick={() => index && props.onPickCell?.(index)}
          onKeyDown={onKey}
          onBlur={() => go(null)}
        />
      </div>
      <div className="v-under" aria-live="polite" data-testid="cell-value">
        {index ? (
          <>
            <code>{formatIndex(index)}</code> <b>{formatNumber(data[ravel(index, shape)])}</b>
          </>
        ) : (
          <span className="v-dim">{compact ? `${rows} × ${cols}` : 'point at a cell, or use the arrow keys'}</span>
        )}
      </div>
      <Legend scale={scale} whole={whole} compact={compact} />
    </div>
  );
}
