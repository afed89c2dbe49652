// Drawing a picture of numbers onto a canvas: crisp cells, numbers inside large ones, outlines.

import { colourOf, paint, textOn, type Scale } from './colours';
import type { Cell, CellSize } from './indices';
import { formatShort } from './numbers';

export interface Picture {
  numbers: Float64Array;
  rows: number;
  cols: number;
  cell: CellSize;
  scale: Scale;
  marked: readonly Cell[];
  current: Cell | null;
  cursor: Cell | null;
  /** Colour of marks: the page's accent. */
  accent: string;
  /** How large the page shows the picture. */
  zoom: number;
}

/** Cells at least this large carry their number. */
const WRITTEN = 28;
/** Letters smaller than this on the screen are left out: nobody can read them. */
const LEGIBLE = 5;

/** Size in pixels of a number in a cell; null where it would not fit or could not be read. */
export function letterSize({ wide, high }: CellSize, zoom: number, longest: number): number | null {
  const least = Math.min(wide, high);
  // A letter is 0.6 times as wide as it is high.
  const size = Math.min(14, least / 2.4, Math.max(9, (wide - 4) / (0.6 * Math.max(1, longest))));
  return least >= WRITTEN && size * zoom >= LEGIBLE ? size : null;
}

/** Cells at least this large have hairlines between them. */
const RULED = 9;

/** The colours alone, one pixel per cell; drawn once per slice and scaled on every redraw. */
export function bitmapOf(numbers: Float64Array, rows: number, cols: number, scale: Scale): HTMLCanvasElement {
  const bitmap = document.createElement('canvas');
  bitmap.width = cols;
  bitmap.height = rows;
  const context = bitmap.getContext('2d');
  if (context && rows * cols > 0) {
    const image = context.createImageData(cols, rows);
    paint(numbers, scale, image.data);
    context.putImageData(image, 0, 0);
  }
  return bitmap;
}

export function draw(canvas: HTMLCanvasElement, bitmap: HTMLCanvasElement, picture: Picture): void {
  const { rows, cols, cell, scale, numbers } = picture;
  const { wide, high } = cell;
  const least = Math.min(wide, high);
  // Letters are drawn twice as fine as they are shown and smoothed: a block stands between two pixels. Plain cells keep
  // their edges.
  const texts = least >= WRITTEN ? Array.from(numbers, formatShort) : [];
  const letters = letterSize(cell, picture.zoom, Math.max(0, ...texts.map((text) => text.length)));
  const ratio = (window.devicePixelRatio || 1) * (letters === null ? 1 : 2 * picture.zoom);
  canvas.style.imageRendering = letters === null ? 'pixelated' : 'auto';
  const width = Math.max(1, cols * wide);
  const height = Math.max(1, rows * high);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  if (!context || rows * cols === 0) return;
  context.scale(ratio, ratio);
  // Several cells in one pixel are averaged; anything larger stays sharp.
  context.imageSmoothingEnabled = least < 1;
  context.drawImage(least < 1 ? widened(bitmap, cell) : bitmap, 0, 0, width, height);
  if (least >= RULED) rule(context, picture);
  if (letters !== null) {
    context.font = `${letters}px ui-monospace, monospace`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let at = 0; at < rows * cols; at += 1) {
      const value = numbers[at] ?? Number.NaN;
      context.fillStyle = textOn(colourOf(scale, value));
      const x = ((at % cols) + 0.5) * wide;
      context.fillText(texts[at] ?? '', x, (Math.floor(at / cols) + 0.5) * high + 0.5, wide - 4);
    }
  }
  const edge = edgeOf(context, picture.accent);
  for (const mark of picture.marked) outline(context, mark, cell, picture.accent, edge, 2);
  if (picture.current) outline(context, picture.current, cell, picture.accent, edge, 4);
  if (picture.cursor) outline(context, picture.cursor, cell, '#fff', '#000', 2);
}

/** Cells crowded along one side only: the other side is made large first, without smoothing. */
function widened(bitmap: HTMLCanvasElement, { wide, high }: CellSize): HTMLCanvasElement {
  if (wide < 1 && high < 1) return bitmap;
  const copy = document.createElement('canvas');
  copy.width = bitmap.width * Math.max(1, Math.round(wide));
  copy.height = bitmap.height * Math.max(1, Math.round(high));
  const context = copy.getContext('2d');
  if (!context) return bitmap;
  context.imageSmoothingEnabled = false;
  context.drawImage(bitmap, 0, 0, copy.width, copy.height);
  return copy;
}

/** Black around a light colour, white around a dark one. */
function edgeOf(context: CanvasRenderingContext2D, colour: string): string {
  // A canvas reads any CSS colour and gives #rrggbb back.
  context.fillStyle = colour;
  const bytes = /^#(..)(..)(..)$/.exec(String(context.fillStyle)) ?? ['', '0', '0', '0'];
  return textOn([parseInt(bytes[1] ?? '', 16), parseInt(bytes[2] ?? '', 16), parseInt(bytes[3] ?? '', 16)]);
}

function rule(context: CanvasRenderingContext2D, { rows, cols, cell }: Picture): void {
  context.strokeStyle = 'rgba(128, 128, 128, 0.35)';
  context.lineWidth = 1;
  context.beginPath();
  for (let row = 1; row < rows; row += 1) {
    context.moveTo(0, row * cell.high + 0.5);
    context.lineTo(cols * cell.wide, row * cell.high + 0.5);
  }
  for (let col = 1; col < cols; col += 1) {
    context.moveTo(col * cell.wide + 0.5, 0);
    context.lineTo(col * cell.wide + 0.5, rows * cell.high);
  }
  context.stroke();
}

/** A frame inside the cell, edged so that it shows on any colour. */
function outline(
  context: CanvasRenderingContext2D,
  at: Cell,
  cell: CellSize,
  colour: string,
  edge: string,
  thick: number,
): void {
  // Tiny cells get a frame around them instead of one that hides them.
  const wide = Math.max(cell.wide, 5);
  const high = Math.max(cell.high, 5);
  const x = at.col * cell.wide - (wide - cell.wide) / 2;
  const y = at.row * cell.high - (high - cell.high) / 2;
  const line = Math.min(thick, Math.max(1, Math.min(wide, high) / 4));
  for (const [width, style] of [
    [line + 2, edge],
    [line, colour],
  ] as const) {
    context.lineWidth = width;
    context.strokeStyle = style;
    context.strokeRect(x + line / 2 + 0.5, y + line / 2 + 0.5, wide - line - 1, high - line - 1);
  }
}
