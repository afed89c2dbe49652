import { describe, expect, it } from 'vitest';
import { columnsOf, layered } from './layers';
import { addBlock, addWire } from './page';
import { samplePage } from './samples';
import { overlaps } from './spread';

describe('columns', () => {
  it('follow the wires', () => {
    expect(Object.fromEntries(columnsOf(samplePage()))).toEqual({ a: 0, b: 1, c: 2 });
  });
  it('put what needs nothing close to what needs it', () => {
    const page = addWire(addBlock(samplePage(), { id: 'd', type: 'Const' }), ['d', 'output'], ['c', 'inputs']);
    expect(columnsOf(page).get('d')).toBe(1);
  });
  it('end on a page that goes in circles', () => {
    const page = addWire(samplePage(), ['c', 'sum'], ['b', 'features']);
    expect([...columnsOf(page).keys()]).toEqual(['a', 'b', 'c']);
  });
});

describe('a page laid out', () => {
  it('has no blocks that meet and runs from left to right', () => {
    let page = samplePage();
    for (let i = 0; i < 20; i++) {
      page = addBlock(page, { id: `x${i}`, type: 'Const', at: [0, 0] });
      page = addWire(page, [`x${i}`, 'output'], ['c', 'inputs']);
    }
    const sizes = new Map(page.blocks.map((block, i) => [block.id, { width: 240, height: 80 + 10 * i }]));
    const next = layered(page, sizes);
    expect(overlaps(next, sizes)).toBe(false);
    const x = (id: string) => next.blocks.find((block) => block.id === id)?.at?.[0] ?? NaN;
    for (const { from, to } of next.wires ?? []) expect(x(from[0])).toBeLessThan(x(to[0]));
  });
});
