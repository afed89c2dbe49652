// From a number to a colour. Data of one sign uses viridis over its own range; data of both signs
// a blue-white-red map centred at 0, so that white always means nothing. What is not finite has
// colours that stand in neither map.

export type Rgb = readonly [number, number, number];

const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84],
  [71, 19, 101],
  [72, 36, 117],
  [70, 52, 128],
  [65, 68, 135],
  [59, 82, 139],
  [52, 96, 141],
  [47, 108, 142],
  [42, 120, 142],
  [37, 132, 142],
  [33, 145, 140],
  [30, 156, 137],
  [34, 168, 132],
  [47, 180, 124],
  [68, 191, 112],
  [94, 201, 98],
  [122, 209, 81],
  [155, 217, 60],
  [189, 223, 38],
  [223, 227, 24],
  [253, 231, 37],
];

const DIVERGING: readonly Rgb[] = [
  [5, 48, 97],
  [33, 102, 172],
  [67, 147, 195],
  [146, 197, 222],
  [209, 229, 240],
  [247, 247, 247],
  [253, 219, 199],
  [244, 165, 130],
  [214, 96, 77],
  [178, 24, 43],
  [103, 0, 31],
];

export const NAN_COLOUR: Rgb = [255, 0, 255];
export const PLUS_INFINITY_COLOUR: Rgb = [255, 140, 0];
export const MINUS_INFINITY_COLOUR: Rgb = [0, 229, 255];

export interface Scale {
  kind: 'viridis' | 'diverging';
  low: number;
  high: number;
}

export interface Extremes {
  low: number;
  high: number;
  nan: number;
  plus: number;
  minus: number;
}

/** Smallest and largest finite number, and how many are not finite. */
export function extremesOf(data: ArrayLike<number>): Extremes {
  const found: Extremes = { low: Infinity, high: -Infinity, nan: 0, plus: 0, minus: 0 };
  for (let at = 0; at < data.length; at += 1) {
    const value = data[at] ?? Number.NaN;
    if (Number.isNaN(value)) found.nan += 1;
    else if (value === Infinity) found.plus += 1;
    else if (value === -Infinity) found.minus += 1;
    else {
      if (value < found.low) found.low = value;
      if (value > found.high) found.high = value;
    }
  }
  return found;
}

/** The map for data between two numbers; empty ranges (nothing finite) become 0 to 1. */
export function scaleFor(low: number, high: number): Scale {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return { kind: 'viridis', low: 0, high: 1 };
  if (low < 0 && high > 0) {
    const limit = Math.max(-low, high);
    return { kind: 'diverging', low: -limit, high: limit };
  }
  return { kind: 'viridis', low, high };
}

/** Position of a finite number in the scale, 0 to 1. A range of one number sits in the middle. */
export function positionIn(scale: Scale, value: number): number {
  // Halves first: high - low of the largest floats is infinite.
  const range = scale.high / 2 - scale.low / 2;
  if (!(range > 0)) return 0.5;
  return Math.min(1, Math.max(0, (value / 2 - scale.low / 2) / range));
}

function mix(stops: readonly Rgb[], t: number): Rgb {
  const place = t * (stops.length - 1);
  const left = Math.min(stops.length - 2, Math.floor(place));
  const part = place - left;
  const a = stops[left] ?? NAN_COLOUR;
  const b = stops[left + 1] ?? a;
  return [
    Math.round(a[0] + (b[0] - a[0]) * part),
    Math.round(a[1] + (b[1] - a[1]) * part),
    Math.round(a[2] + (b[2] - a[2]) * part),
  ];
}

export function stopsOf(kind: Scale['kind']): readonly Rgb[] {
  return kind === 'viridis' ? VIRIDIS : DIVERGING;
}

export function colourOf(scale: Scale, value: number): Rgb {
  if (Number.isNaN(value)) return NAN_COLOUR;
  if (value === Infinity) return PLUS_INFINITY_COLOUR;
  if (value === -Infinity) return MINUS_INFINITY_COLOUR;
  return mix(stopsOf(scale.kind), positionIn(scale, value));
}

/** RGBA bytes of a picture, one pixel per number. */
export function paint(data: ArrayLike<number>, scale: Scale, into: Uint8ClampedArray): void {
  // 256 steps are all a screen shows; the table keeps a picture of a million cells below a frame.
  const table = Array.from({ length: 256 }, (_, step) => mix(stopsOf(scale.kind), step / 255));
  for (let at = 0; at < data.length; at += 1) {
    const value = data[at] ?? Number.NaN;
    const colour = Number.isFinite(value)
      ? (table[Math.round(positionIn(scale, value) * 255)] ?? NAN_COLOUR)
      : colourOf(scale, value);
    into[at * 4] = colour[0];
    into[at * 4 + 1] = colour[1];
    into[at * 4 + 2] = colour[2];
    into[at * 4 + 3] = 255;
  }
}

/** Black or white, whichever reads better on a colour (relative luminance of WCAG). */
export function textOn(colour: Rgb): '#000' | '#fff' {
  const linear = colour.map((byte) => {
    const part = byte / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
  return light > 0.179 ? '#000' : '#fff';
}

export function css(colour: Rgb): string {
  return `rgb(${colour[0]}, ${colour[1]}, ${colour[2]})`;
}

/** The colour bar of a scale as a CSS background. */
export function gradientOf(kind: Scale['kind']): string {
  return `linear-gradient(to right, ${stopsOf(kind).map(css).join(', ')})`;
}
