import { describe, expect, it } from 'vitest';
import { align, distribute } from './arrange';
import { samplePage } from './samples';
import { overlaps, spread } from './spread';

const SIZES = new Map(['a', 'b', 'c'].map((id, i) => [id, { width: 100 + 20 * i, height: 50 }]));
const ALL = new Set(['a', 'b', 'c']);
const places = (page: ReturnType<typeof samplePage>) => page.blocks.map((block) => block.at);

describe('aligning', () => {
  it('moves edges to the outermost one', () => {
    expect(places(align(samplePage(), ALL, SIZES, 'left'))).toEqual([[0, 0], [0, 40], [0, 120]]);
    expect(places(align(samplePage(), ALL, SIZES, 'right'))).toEqual([[440, 0], [420, 40], [400, 120]]);
    expect(places(align(samplePage(), ALL, SIZES, 'bottom'))).toEqual([[0, 120], [200, 120], [400, 120]]);
  });
  it('of one block does nothing', () => {
    const page = samplePage();
    expect(align(page, new Set(['a']), SIZES, 'left')).toBe(page);
  });
});

describe('distributing', () => {
  it('makes gaps equal', () => {
    expect(places(distribute(samplePage(), ALL, SIZES, 'down'))).toEqual([[0, 0], [200, 60], [400, 120]]);
  });
});

describe('making room', () => {
  it('keeps who is above whom and ends without blocks that meet', () => {
    const sizes = new Map(['a', 'b', 'c'].map((id) => [id, { width: 240, height: 200 }]));
    const page = samplePage();
    page.blocks = page.blocks.map((block) => ({ ...block, at: [(block.at?.[0] ?? 0) / 4, block.at?.[1] ?? 0] }));
    expect(overlaps(page, sizes)).toBe(true);
    const next = spread(page, sizes, true);
    expect(overlaps(next, sizes)).toBe(false);
    const tops = next.blocks.map((block) => block.at?.[1] ?? 0);
    expect([...tops].sort((a, b) => a - b)).toEqual(tops);
    expect(spread(next, sizes, false)).toBe(next);
  });
});
