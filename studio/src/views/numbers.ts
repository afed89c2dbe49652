// How numbers are written in every view: six significant digits, exponents only where a plain
// number would need leading or trailing zeros. Nothing here knows tensors.

const LARGE = 1e6;
const SMALL = 1e-4;

/** Drop zeros that carry no information: "1.500" to "1.5", "2.000" to "2". */
function trim(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** One number as text. The server sends null for numbers that are not finite. */
export function formatNumber(value: number | null | undefined, digits = 6): string {
  if (value === undefined) return '';
  if (value === null) return 'not finite';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  // Rounding comes first: 999999.7 becomes 1e6, which is the text of a large number.
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size >= LARGE || size < SMALL) {
    const [mantissa = '', exponent = ''] = rounded.toExponential(digits - 1).split('e');
    return `${trim(mantissa)}e${exponent.replace('+', '')}`;
  }
  // Not toPrecision: that turns 1230 of three digits into 1.23e+3.
  return String(rounded);
}

/** A short form for axes and cells: three digits, whole numbers up to five, zero without its sign. */
export function formatShort(value: number | null): string {
  if (value === null) return 'n/f';
  if (value === 0) return '0';
  return formatNumber(value, Number.isInteger(value) && Math.abs(value) < 1e5 ? 6 : 3);
}

/** Characters of the longest number, at least 4; of many numbers a few hundred are looked at. */
export function widestText(numbers: ArrayLike<number>, digits = 6): number {
  const step = numbers.length > 997 ? Math.ceil(numbers.length / 997) : 1;
  let widest = 4;
  for (let at = 0; at < numbers.length; at += step) {
    widest = Math.max(widest, formatNumber(numbers[at], digits).length);
  }
  return widest;
}

/** A whole number with thin groups of three: 1 234 567. */
export function formatCount(value: number): string {
  return Math.trunc(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** The largest unit, tried from the left, that leaves at least 1 before it. */
function withUnit(value: number, units: readonly (readonly [number, string])[]): string {
  const last = units[units.length - 1];
  if (last === undefined) return formatNumber(value, 3);
  const [scale, unit] = units.find(([factor]) => Math.abs(value) >= factor) ?? last;
  return `${formatNumber(value / scale, 3)} ${unit}`;
}

export function formatBytes(bytes: number): string {
  return withUnit(bytes, [
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
    [1, 'B'],
  ]);
}

export function formatFlops(flops: number): string {
  return withUnit(flops, [
    [1e9, 'GFLOP'],
    [1e6, 'MFLOP'],
    [1e3, 'kFLOP'],
    [1, 'FLOP'],
  ]);
}

export function formatSeconds(seconds: number): string {
  return withUnit(seconds, [
    [1, 's'],
    [1e-3, 'ms'],
    [1e-6, 'µs'],
    [1e-9, 'ns'],
  ]);
}

/** A shape as the blocks write it: "1 × 8 × 8 × 2", "scalar". */
export function formatShape(shape: readonly (number | null)[]): string {
  return shape.length === 0 ? 'scalar' : shape.map((size) => size ?? '?').join(' × ');
}

/** An index as Python writes it: "[0, 3, 3, 1]". */
export function formatIndex(index: readonly number[]): string {
  return `[${index.join(', ')}]`;
}
