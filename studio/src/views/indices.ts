// Index arithmetic of C-ordered tensors, and cells under a mouse or a key. Pure numbers.

export type Index = readonly number[];

export function sizeOf(shape: Index): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Elements between neighbours of each axis. */
export function stridesOf(shape: Index): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis -= 1) {
    strides[axis] = (strides[axis + 1] ?? 1) * (shape[axis + 1] ?? 1);
  }
  return strides;
}

/** Position of an index in the flat data. */
export function ravel(index: Index, shape: Index): number {
  let position = 0;
  for (let axis = 0; axis < shape.length; axis += 1) {
    position = position * (shape[axis] ?? 1) + (index[axis] ?? 0);
  }
  return position;
}

/** The index that stands at a position of the flat data. */
export function unravel(position: number, shape: Index): number[] {
  const index = new Array<number>(shape.length).fill(0);
  let rest = position;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const size = Math.max(1, shape[axis] ?? 1);
    index[axis] = rest % size;
    rest = Math.floor(rest / size);
  }
  return index;
}

/** True if the index names a cell of the tensor. */
export function inside(index: Index, shape: Index): boolean {
  return (
    index.length === shape.length &&
    index.every((at, axis) => Number.isInteger(at) && at >= 0 && at < (shape[axis] ?? 0))
  );
}

export function sameIndex(a: Index | null | undefined, b: Index | null | undefined): boolean {
  if (!a || !b) return a === b;
  return a.length === b.length && a.every((at, axis) => at === b[axis]);
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

export interface Cell {
  row: number;
  col: number;
}

/** Width and height of a cell in pixels. */
export interface CellSize {
  wide: number;
  high: number;
}

/** The cell at a point of the picture, or null beside it. */
export function cellAt(x: number, y: number, size: CellSize, rows: number, cols: number): Cell | null {
  const row = Math.floor(y / size.high);
  const col = Math.floor(x / size.wide);
  return row >= 0 && col >= 0 && row < rows && col < cols ? { row, col } : null;
}

/** Where a key takes the cell; null for keys that do not move. */
export function moveCell(from: Cell, key: string, rows: number, cols: number): Cell | null {
  const steps = new Map<string, readonly [number, number]>([
    ['ArrowUp', [-1, 0]],
    ['ArrowDown', [1, 0]],
    ['ArrowLeft', [0, -1]],
    ['ArrowRight', [0, 1]],
    ['PageUp', [-10, 0]],
    ['PageDown', [10, 0]],
    ['Home', [0, -cols]],
    ['End', [0, cols]],
  ]);
  const step = steps.get(key);
  if (!step) return null;
  return {
    row: clamp(from.row + step[0], 0, Math.max(0, rows - 1)),
    col: clamp(from.col + step[1], 0, Math.max(0, cols - 1)),
  };
}

/** Cells on the straight line between two, so that a fast mouse leaves no holes. */
export function lineOfCells(from: Cell, to: Cell): Cell[] {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.col - from.col), 1);
  return Array.from({ length: steps + 1 }, (_, step) => ({
    row: Math.round(from.row + ((to.row - from.row) * step) / steps),
    col: Math.round(from.col + ((to.col - from.col) * step) / steps),
  }));
}

/**
 * Size of a cell: square, as large as fits, whole pixels as soon as one fits. Where one side is so long
 * that the other would be a hairline, cells are stretched across it up to a third of the box.
 */
export function cellSize(rows: number, cols: number, width: number, height: number, largest: number): CellSize {
  const across = Math.max(1, cols);
  const down = Math.max(1, rows);
  const fits = Math.min(width / across, height / down, largest);
  const side = fits >= 1 ? Math.floor(fits) : Math.max(fits, 1 / 64);
  const stretched = (box: number, count: number) => Math.max(side, Math.floor(Math.min(box / 3 / count, largest / 2)));
  if (side >= STRETCHED) return { wide: side, high: side };
  return { wide: stretched(width, across), high: stretched(height, down) };
}

/** Cells smaller than this may be stretched. */
const STRETCHED = 6;

export interface Range {
  start: number;
  end: number;
}

/** Which of `count` equal rows are worth drawing in a scrolled box. */
export function visibleRange(scroll: number, extent: number, size: number, count: number, spare = 4): Range {
  const start = clamp(Math.floor(scroll / size) - spare, 0, count);
  const end = clamp(Math.ceil((scroll + extent) / size) + spare, start, count);
  return { start, end };
}
