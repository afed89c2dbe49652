// Bars of a histogram inside a box, from edges and counts the server sends. Pure layout.

export interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
  count: number;
  low: number;
  high: number;
}

export interface HistogramData {
  edges: readonly (number | null)[];
  counts: readonly number[];
}

/** One bar per bin; heights share one scale, linear or logarithmic (log of 1 + count). */
export function layoutBars(data: HistogramData, width: number, height: number, logarithmic = false): Bar[] {
  const level = (count: number) => (logarithmic ? Math.log1p(count) : count);
  const top = Math.max(...data.counts.map(level), 0);
  const first = data.edges[0] ?? 0;
  const last = data.edges[data.edges.length - 1] ?? first;
  const range = last - first;
  return data.counts.map((count, bin) => {
    const low = data.edges[bin] ?? first;
    const high = data.edges[bin + 1] ?? last;
    // Bins of no width (one number only) are laid out evenly.
    const x = range > 0 ? ((low - first) / range) * width : (bin / data.counts.length) * width;
    const right = range > 0 ? ((high - first) / range) * width : ((bin + 1) / data.counts.length) * width;
    // A bin with one element in a million is still a bin: at least one pixel.
    const tall = count === 0 || top === 0 ? 0 : Math.max(1, (level(count) / top) * height);
    return { x, y: height - tall, width: right - x, height: tall, count, low, high };
  });
}

/** Where a number lies on the horizontal axis, or null outside. */
export function placeOf(data: HistogramData, value: number | null, width: number): number | null {
  const first = data.edges[0];
  const last = data.edges[data.edges.length - 1];
  if (value === null || first == null || last == null || !(last > first)) return null;
  return value < first || value > last ? null : ((value - first) / (last - first)) * width;
}
