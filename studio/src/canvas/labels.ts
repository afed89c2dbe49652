// Where the label of a wire stands: beside the pin it comes from, so that labels of wires that part there fall together.

export interface LabelPlace {
  x: number;
  y: number;
  anchor: 'start' | 'end';
}

/** Width of a letter of `.wire-label`, in pixels of the page. */
const LETTER = 6.1;
const BESIDE = 10;
const ABOVE = 3;

/**
 * The items of a list come from one pin and differ: their labels stand where the wires end. A label that has no room
 * before the block a wire goes to is left out; the output it comes from says the same.
 */
export function labelPlace(text: string, source: readonly [number, number], target: readonly [number, number], item: boolean): LabelPlace | null {
  const room = target[0] - source[0];
  if (!text || (room > 0 && room < text.length * LETTER + 2 * BESIDE)) return null;
  if (item) return { x: target[0] - BESIDE, y: target[1] - ABOVE, anchor: 'end' };
  return { x: source[0] + BESIDE, y: source[1] - ABOVE, anchor: 'start' };
}
