// The few facts of an explanation that a table shows. The document may hold more or less: what is
// absent or of another kind is left out, nothing is invented.

import { formatBytes, formatFlops, formatNumber, formatSeconds } from './numbers';

export type Fact = readonly [name: string, value: string];

export interface Candidate {
  name: string;
  chosen: boolean;
  /** Predicted microseconds, or null with the reason it was refused. */
  predicted: number | null;
  reason: string | null;
}

type Document = Readonly<Record<string, unknown>>;

const numberAt = (document: Document, key: string): number | null => {
  const value = document[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
};

export function factsOf(document: Document): Fact[] {
  const facts: Fact[] = [];
  const text = (name: string, key: string) => {
    const value = document[key];
    if (typeof value === 'string') facts.push([name, value]);
  };
  const number = (name: string, key: string, write: (value: number) => string) => {
    const value = numberAt(document, key);
    if (value !== null) facts.push([name, write(value)]);
  };
  text('algorithm', 'algorithm');
  number('predicted time', 'predicted_us', (us) => formatSeconds(us * 1e-6));
  number('roofline', 'roofline_ms', (ms) => `${formatSeconds(ms * 1e-3)} at best`);
  const predicted = numberAt(document, 'predicted_us');
  const roofline = numberAt(document, 'roofline_ms');
  if (predicted && roofline)
    facts.push(['share of the roofline', `${formatNumber((100 * roofline * 1e3) / predicted, 3)} %`]);
  number('arithmetic', 'flops', formatFlops);
  number('bytes moved', 'bytes', formatBytes);
  const flops = numberAt(document, 'flops');
  const bytes = numberAt(document, 'bytes');
  if (flops && bytes) facts.push(['intensity', `${formatNumber(flops / bytes, 3)} FLOP per byte`]);
  number('roof', 'roof_gflops', (roof) => `${formatNumber(roof, 3)} GFLOP/s`);
  number('memory', 'roof_gb_per_second', (roof) => `${formatNumber(roof, 3)} GB/s`);
  number('workspace', 'scratch_bytes', formatBytes);
  text('target', 'target');
  number('threads', 'threads', (threads) => formatNumber(threads));
  return facts;
}

/** Algorithms in the order of the library's choice, those with a time first. */
export function candidatesOf(document: Document): Candidate[] {
  const rows = document['candidates'];
  if (typeof rows !== 'object' || rows === null) return [];
  const found = Object.entries(rows).flatMap(([name, row]): Candidate[] => {
    if (typeof row !== 'object' || row === null) return [];
    const { predicted_us: predicted, reason } = row as Document;
    return [
      {
        name,
        chosen: name === document['algorithm'],
        predicted: typeof predicted === 'number' ? predicted : null,
        reason: typeof reason === 'string' ? reason : null,
      },
    ];
  });
  const cost = (row: Candidate) => row.predicted ?? Infinity;
  return found.sort((a, b) => Number(b.chosen) - Number(a.chosen) || (cost(a) === cost(b) ? 0 : cost(a) - cost(b)));
}
