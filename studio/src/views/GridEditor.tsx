// Numbers drawn by mouse into a small grid, for placeholders and constants.

import { useState, type KeyboardEvent, type PointerEvent } from 'react';
import { AxisControls } from './AxisControls';
import { extentOf, indexOf } from './axes';
import { colourOf, css, extremesOf, scaleFor, textOn } from './colours';
import { lineOfCells, moveCell, ravel, sizeOf, type Cell, type Index } from './indices';
import { formatIndex, formatNumber, formatShort } from './numbers';
import { useLook } from './useLook';
import { useWidth } from './useSize';

export interface GridEditorProps {
  shape: Index;
  /** Flat, C order; missing numbers are 0. */
  values: readonly number[];
  onChange: (values: number[]) => void;
}

/** Above this many cells on the screen a file is the better way to feed numbers. */
export const MOST_CELLS = 4096;

export function GridEditor({ shape, values, onChange }: GridEditorProps) {
  const [look, setLook] = useLook(shape, '');
  const [text, setText] = useState('1');
  const [erasing, setErasing] = useState(false);
  const [last, setLast] = useState<Cell | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [box, width] = useWidth<HTMLDivElement>(320);
  const { rows, cols } = extentOf(shape, look.slice);
  const brush = Number(text);
  const valid = text.trim() !== '' && !Number.isNaN(brush);
  const count = sizeOf(shape);
  const full = Array.from({ length: count }, (_, at) => values[at] ?? 0);
  const scale = rangeOf(full);
  const cell = Math.max(6, Math.floor(Math.min(width / cols, 320 / rows, 44)));

  const paintCells = (cells: readonly Cell[]) => {
    if (!valid && !erasing) return;
    for (const { row, col } of cells) full[ravel(indexOf(look.slice, row, col), shape)] = erasing ? 0 : brush;
    onChange(full);
  };
  const cellUnder = (event: PointerEvent<HTMLElement>): Cell | null => {
    const frame = event.currentTarget.getBoundingClientRect();
    // Measured as drawn: the page of blocks may be zoomed.
    const col = Math.floor(((event.clientX - frame.left) / frame.width) * cols);
    const row = Math.floor(((event.clientY - frame.top) / frame.height) * rows);
    return row >= 0 && col >= 0 && row < rows && col < cols ? { row, col } : null;
  };
  const onDown = (event: PointerEvent<HTMLDivElement>) => {
    const at = cellUnder(event);
    if (!at || event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setLast(at);
    setCursor(at);
    paintCells([at]);
  };
  const onMove = (event: PointerEvent<HTMLDivElement>) => {
    const at = cellUnder(event);
    if (at?.row === cursor?.row && at?.col === cursor?.col) return;
    setCursor(at);
    if (!last || !at) return;
    setLast(at);
    paintCells(lineOfCells(last, at));
  };
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const at = cursor ?? { row: 0, col: 0 };
    const next = moveCell(at, event.key, rows, cols);
    if (next) setCursor(cursor ? next : at);
    else if (event.key === ' ' || event.key === 'Enter') paintCells([at]);
    else if (event.key === 'Delete' || event.key === 'Backspace') {
      full[ravel(indexOf(look.slice, at.row, at.col), shape)] = 0;
      onChange(full);
    } else return;
    event.preventDefault();
    // Space and Delete mean something else on the page.
    event.stopPropagation();
  };
  if (rows * cols > MOST_CELLS) {
    return <p className="v-dim">{`${rows} × ${cols} cells are too many to draw; feed a file instead.`}</p>;
  }
  const under = cursor && cursor.row < rows && cursor.col < cols ? indexOf(look.slice, cursor.row, cursor.col) : null;
  return (
    <div ref={box} className="v-editor nodrag" data-testid="grid-editor">
      <div className="v-tools">
        <label>
          brush
          <input
            type="text"
            inputMode="decimal"
            value={text}
            aria-invalid={!valid}
            onChange={(event) => {
              setText(event.target.value);
              setErasing(false);
            }}
          />
        </label>
        <button type="button" aria-pressed={erasing} onClick={() => setErasing(!erasing)}>
          erase
        </button>
        <button type="button" disabled={!valid} onClick={() => onChange(new Array<number>(count).fill(brush))}>
          fill
        </button>
        <button type="button" onClick={() => onChange(new Array<number>(count).fill(0))}>
          clear
        </button>
      </div>
      <AxisControls shape={shape} look={look} onChange={setLook} compact={shape.length < 3} />
      <div
        className="v-paper"
        tabIndex={0}
        role="grid"
        aria-label={`draw ${rows} by ${cols} numbers`}
        style={{ width: cols * cell, height: rows * cell }}
        onPointerDown={onDown}
        onPointerMove={onMove}
        onPointerUp={() => setLast(null)}
        onPointerCancel={() => setLast(null)}
        onPointerLeave={() => setCursor(null)}
        onKeyDown={onKey}
      >
        {Array.from({ length: rows * cols }, (_, at) => {
          const row = Math.floor(at / cols);
          const col = at % cols;
          const value = full[ravel(indexOf(look.slice, row, col), shape)] ?? 0;
          const colour = colourOf(scale, value);
          const pointed = cursor?.row === row && cursor.col === col;
          return (
            <span
              key={at}
              className={pointed ? 'v-ink v-cursor' : 'v-ink'}
              style={{
                left: col * cell,
                top: row * cell,
                width: cell,
                height: cell,
                background: css(colour),
                color: textOn(colour),
                fontSize: Math.min(12, cell / 2.9),
              }}
            >
              {cell >= 24 ? formatShort(value) : ''}
            </span>
          );
        })}
      </div>
      <div className="v-under">
        {!valid && !erasing ? (
          <span className="v-bad">{`brush must be a number, got "${text}"`}</span>
        ) : under ? (
          <>
            <code>{formatIndex(under)}</code> <b>{formatNumber(full[ravel(under, shape)])}</b>
          </>
        ) : (
          <span className="v-dim">draw with the mouse, or arrows and space</span>
        )}
      </div>
    </div>
  );
}

/** Colours against 0, so that an empty sheet and a full one look different. */
function rangeOf(values: readonly number[]) {
  const { low, high } = extremesOf(values);
  const bottom = Math.min(0, low);
  const top = Math.max(0, high);
  return scaleFor(bottom, bottom === top ? 1 : top);
}
