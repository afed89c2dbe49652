// Axes and lines of a plot: round ticks, linear or logarithmic, gaps where a value is not finite.

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Round numbers (1, 2 or 5 times a power of ten) between two others, at most about `count`. */
export function ticks(low: number, high: number, count = 5): number[] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [];
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) ?? rough;
  const out: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    out.push(Number((at * step).toPrecision(12)));
  }
  return out;
}

/** Powers of ten between two positive numbers; few powers give round ticks instead. */
export function logTicks(low: number, high: number): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) return ticks(low, high, 4).filter((tick) => tick > 0);
  const step = Math.ceil((last - first + 1) / 6);
  const out: number[] = [];
  for (let power = first; power <= last; power += step) out.push(Number(`1e${power}`));
  return out;
}

export interface Axis {
  low: number;
  high: number;
  logarithmic: boolean;
  ticks: number[];
}

/** The vertical axis for values; a logarithm looks at positive ones only. */
export function axisFor(values: readonly (number | null)[], logarithmic: boolean): Axis {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value) || (logarithmic && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return { low: 0.1, high: 1, logarithmic, ticks: [] };
  if (logarithmic) {
    if (high / low < 1.01) [low, high] = [low / 1.5, high * 1.5];
    return { low, high, logarithmic, ticks: logTicks(low, high) };
  }
  // A loss that ends near zero is read against zero.
  if (low > 0 && low < high * 0.3) low = 0;
  if (high - low <= Math.abs(high) * 1e-9) {
    const room = Math.abs(high) * 0.1 || 1;
    [low, high] = [low - room, high + room];
  }
  return { low, high, logarithmic, ticks: ticks(low, high) };
}

/** Height of a value in the frame, null if the axis cannot show it. */
export function heightOf(value: number | null, axis: Axis, frame: Frame): number | null {
  if (value === null || !Number.isFinite(value)) return null;
  if (axis.logarithmic && value <= 0) return null;
  const map = axis.logarithmic ? Math.log : (x: number) => x;
  const part = (map(value) - map(axis.low)) / (map(axis.high) - map(axis.low));
  return frame.top + frame.height * (1 - part);
}

/** An SVG path through the values. Long curves keep the lowest and highest of each pixel. */
export function pathOf(values: readonly (number | null)[], axis: Axis, frame: Frame): string {
  const last = Math.max(1, values.length - 1);
  const x = (step: number) => frame.left + (frame.width * step) / last;
  const bin = Math.max(1, Math.ceil(values.length / Math.max(1, frame.width)));
  const parts: string[] = [];
  let pen = false;
  for (let start = 0; start < values.length; start += bin) {
    for (const step of extremesIn(values, start, Math.min(values.length, start + bin))) {
      const y = heightOf(values[step] ?? null, axis, frame);
      if (y !== null) parts.push(`${pen ? 'L' : 'M'}${x(step).toFixed(1)},${y.toFixed(1)}`);
      pen = y !== null;
    }
  }
  return parts.join('');
}

/** Steps of the lowest and highest value of a bin in their order; a bin of one is itself. */
function extremesIn(values: readonly (number | null)[], start: number, end: number): number[] {
  let low = start;
  let high = start;
  for (let step = start; step < end; step += 1) {
    const value = values[step] ?? Number.NaN;
    if (value < (values[low] ?? Infinity)) low = step;
    if (value > (values[high] ?? -Infinity)) high = step;
  }
  return low === high ? [low] : [Math.min(low, high), Math.max(low, high)];
}
