// Answers as the server gives them, made up here so that every view can be looked at without one.

import type { Explanation, Summary, Trace, TraceTerm } from '../src/api/types';
import { ravel, sizeOf, unravel } from '../src/views/indices';

export interface Made {
  shape: number[];
  values: Float32Array;
}

function make(shape: number[], at: (index: number[]) => number): Made {
  return { shape, values: Float32Array.from({ length: sizeOf(shape) }, (_, place) => at(unravel(place, shape))) };
}

/** Repeatable numbers between 0 and 1. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

const random = noise(7);
const input = make([1, 6, 6, 2], ([, h = 0, w = 0, c = 0]) => ((h * 6 + w) % 7) + c - 3);
const filter = make([3, 3, 2, 4], () => Math.round((random() - 0.5) * 8) / 4);
const photo = make([4, 96, 128, 3], ([n = 0, h = 0, w = 0, c = 0]) =>
  Math.max(0, Math.sin(h / 9 + n) * Math.cos(w / (11 + 3 * c)) + 1 + random() / 5),
);
const odd = make([8, 12], ([h = 0, w = 0]) =>
  h === 2 && w === 3 ? NaN : h === 5 && w === 9 ? Infinity : h === 6 && w === 1 ? -Infinity : (h - 4) * (w - 5),
);

function tap(p: number, q: number, k: number, r: number, s: number, c: number): TraceTerm {
  const [h, w] = [p + r - 1, q + s - 1];
  const padding = h < 0 || w < 0 || h > 5 || w > 5;
  const x = padding ? 0 : (input.values[ravel([0, h, w, c], input.shape)] ?? 0);
  const f = filter.values[ravel([r, s, c, k], filter.shape)] ?? 0;
  return {
    parts: [
      { pin: 'input', block: 'x', source_pin: 'output', index: [0, h, w, c], value: x, ...(padding && { padding }) },
      { pin: 'filter', block: 'f', source_pin: 'output', index: [r, s, c, k], value: f },
    ],
    product: x * f,
    ...(padding && { padding }),
  };
}

export function traceOf([, p = 0, q = 0, k = 0]: number[]): Trace {
  const terms: TraceTerm[] = [];
  for (let r = 0; r < 3; r += 1)
    for (let s = 0; s < 3; s += 1) for (let c = 0; c < 2; c += 1) terms.push(tap(p, q, k, r, s, c));
  const sum = terms.reduce((total, term) => total + (term.product ?? 0), 0);
  const formula = 'y[n,p,q,k] = sum over r<3, s<3, c<2 of x[n,p+r-1,q+s-1,c] * f[r,s,c,k]';
  return { terms, sum, value: Math.fround(sum + 1e-7), formula, shown: 18, total: 18 };
}

const output = make([1, 6, 6, 4], (index) => traceOf(index).value ?? 0);
const wrong = make([1, 6, 6, 4], (index) => {
  const value = traceOf(index).value ?? 0;
  return (index[1] ?? 0) > 3 ? value * 1.125 + 0.25 : value;
});

export const tensors: Record<string, Made> = {
  x: input,
  f: filter,
  y: output,
  wrong,
  photo,
  odd,
  one: make([], () => -0.12345678),
  line: make([20], ([at = 0]) => at * at),
  cube: make([3, 5, 7, 9, 2], (index) => index.reduce((sum, at) => sum + at, 0)),
  large: make([400, 500], ([h = 0, w = 0]) => Math.sin(h * w * 1e-3)),
};

export function summaryOf({ shape, values }: Made): Summary {
  const finite = values.filter(Number.isFinite);
  const min = finite.reduce((low, value) => Math.min(low, value), Infinity);
  const max = finite.reduce((high, value) => Math.max(high, value), -Infinity);
  const mean = finite.reduce((sum, value) => sum + value, 0) / finite.length;
  const std = Math.sqrt(finite.reduce((sum, value) => sum + (value - mean) ** 2, 0) / finite.length);
  const width = (max - min) / 32 || 1;
  const counts = new Array<number>(32).fill(0);
  for (const value of finite) counts[Math.min(31, Math.floor((value - min) / width))]! += 1;
  return {
    dtype: 'float32',
    shape,
    min,
    max,
    mean,
    std,
    nan: values.filter(Number.isNaN).length,
    inf: values.filter((value) => Math.abs(value) === Infinity).length,
    histogram: { edges: Array.from({ length: 33 }, (_, at) => min + at * width), counts },
    values: [...values.slice(0, 64)].map((value) => (Number.isFinite(value) ? value : null)),
  };
}

export const explanation: Explanation = {
  text: [
    'conv2d, float32, NHWC',
    '  input [1, 14, 14, 8], filter [3, 3, 8, 16], output [1, 14, 14, 16]',
    '  0.45 MFLOP, 0.02 MB, at best 0.005 ms here, by arithmetic (92 GFLOP/s)',
    'target avx2v256, 1 thread',
    '  winograd: fewer than 16 channels in a group',
    '* dense_direct: predicted 6.72 us (6 x 16), 9.02 us (8 x 8)',
    '  reference: predicted 763 us',
    'workspace 4.6 kB',
  ].join('\n'),
  document: {
    operation: 'conv2d',
    flops: 451584,
    bytes: 23424,
    roofline_ms: 0.00489,
    roof_gflops: 92.3,
    roof_gb_per_second: 42.6,
    target: 'avx2v256',
    threads: 1,
    algorithm: 'dense_direct',
    predicted_us: 6.718,
    scratch_bytes: 4608,
    candidates: {
      winograd: { reason: 'fewer than 16 channels in a group', predicted_us: null },
      dense_direct: { reason: null, predicted_us: 6.718 },
      reference: { reason: null, predicted_us: 762.57 },
    },
  },
};

/** Stands in for the server. */
export async function answer(path: string, init?: RequestInit): Promise<Response> {
  const url = new URL(path, 'http://studio/');
  if (url.pathname.endsWith('/tensor')) {
    const made = tensors[url.searchParams.get('block') ?? ''];
    if (!made) return Response.json({ error: 'run: there is no such block' }, { status: 404 });
    const headers = { 'X-Shape': made.shape.join(','), 'X-Dtype': 'float32' };
    return new Response(made.values.slice().buffer, { headers });
  }
  if (url.pathname.endsWith('/trace')) {
    const { index } = JSON.parse(String(init?.body)) as { index: number[] };
    return Response.json(traceOf(index));
  }
  if (url.pathname.endsWith('/explain')) return Response.json(explanation);
  return Response.json({ error: `no answer for ${url.pathname}` }, { status: 404 });
}
