import { expect, it } from 'vitest';
import { candidatesOf, factsOf } from './explained';

const document = {
  algorithm: 'dense_direct',
  predicted_us: 10,
  roofline_ms: 0.005,
  flops: 2000,
  bytes: 1000,
  threads: 1,
  candidates: {
    winograd: { reason: 'too few channels', predicted_us: null },
    reference: { reason: null, predicted_us: 700 },
    dense_direct: { reason: null, predicted_us: 10 },
  },
};

it('tells algorithm, time, roofline and bytes', () => {
  const facts = new Map(factsOf(document));
  expect(facts.get('algorithm')).toBe('dense_direct');
  expect(facts.get('predicted time')).toBe('10 µs');
  expect(facts.get('roofline')).toBe('5 µs at best');
  expect(facts.get('share of the roofline')).toBe('50 %');
  expect(facts.get('bytes moved')).toBe('1 kB');
  expect(facts.get('intensity')).toBe('2 FLOP per byte');
});

it('leaves out what the document does not say', () => {
  expect(factsOf({})).toEqual([]);
  expect(factsOf({ flops: 'many', algorithm: 3 })).toEqual([]);
  expect(candidatesOf({})).toEqual([]);
});

it('puts the chosen algorithm first, refused ones last', () => {
  expect(candidatesOf(document).map((row) => row.name)).toEqual(['dense_direct', 'reference', 'winograd']);
  expect(candidatesOf(document)[2]).toEqual({
    name: 'winograd',
    chosen: false,
    predicted: null,
    reason: 'too few channels',
  });
});
