import { describe, expect, it } from 'vitest';
import type { Block, Page, Wire } from '../api/types';
import { tableOf } from '../table';
import { addWire, moveBy, remove, setPin } from './page';
import { changedIds, madeFrom, type Part, partOf } from './partial';

/** Forty chains of three blocks: `a0` to `b0` to `c0`, and so on. */
function many(): Page {
  const blocks: Block[] = [];
  const wires: Wire[] = [];
  for (let i = 0; i < 40; i++) {
    blocks.push({ id: `a${i}`, type: 'Const', pins: tableOf([['val', '1']]) }, { id: `b${i}`, type: 'Relu' }, { id: `c${i}`, type: 'AddN' });
    wires.push({ from: [`a${i}`, 'output'], to: [`b${i}`, 'features'] }, { from: [`b${i}`, 'activations'], to: [`c${i}`, 'inputs'] });
  }
  return { format: 'convgrad-page', version: 1, name: 'many', blocks, wires };
}
const ids = (part: Part | null) => part?.page.blocks.map((block) => block.id);

describe('the part an edit concerns', () => {
  it('is what comes after the block, and all that is made from', () => {
    const page = addWire(many(), ['b7', 'activations'], ['c3', 'inputs']);
    const part = partOf(setPin(page, 'a3', 'val', '2'), page);
    expect(ids(part)).toEqual(['a3', 'b3', 'c3', 'a7', 'b7']);
    expect(part?.page.wires).toHaveLength(4);
    expect(part?.all).toBe(true);
  });
  it('follows wires that came and went', () => {
    const page = many();
    expect(ids(partOf(addWire(page, ['a1', 'output'], ['c2', 'inputs']), page))).toEqual(['a1', 'a2', 'b2', 'c2']);
    expect(ids(partOf(remove(page, new Set(['b5']), new Set()), page))).toEqual(['c5']);
  });
  it('of a block alone is what it is made from', () => {
    const page = addWire(many(), ['b7', 'activations'], ['c3', 'inputs']);
    expect(madeFrom(page, 'b7').blocks.map(({ id }) => id)).toEqual(['a7', 'b7']);
    expect(madeFrom(page, 'c3').wires).toHaveLength(4);
  });
  it('is nothing for blocks that were moved', () => {
    const page = many();
    expect(changedIds(moveBy(page, new Set(['a1']), 8, 8), page).size).toBe(0);
  });
  it('is the nearest of it first, if much is behind the edit', () => {
    const page = many();
    const wide = { ...page, wires: page.blocks.slice(1).map((block, i): Wire => ({ from: [page.blocks[i]?.id ?? '', 'output'], to: [block.id, 'x'] })) };
    const part = partOf(setPin(wide, 'a2', 'val', '2'), wide);
    expect(ids(part)?.slice(0, 8)).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'c1', 'a2', 'b2']);
    expect(part?.page.blocks).toHaveLength(6 + 32);
    expect(part?.all).toBe(false);
  });
  it('is the whole page if that is small, or if what is near is made from most of it', () => {
    const page = many();
    const small = { ...page, blocks: page.blocks.slice(0, 30), wires: [] };
    expect(partOf(setPin(small, 'a3', 'val', '2'), small)).toBeNull();
    const last = { ...page, wires: page.blocks.slice(1).map((block): Wire => ({ from: [block.id, 'output'], to: ['a0', 'x'] })) };
    expect(partOf(setPin(last, 'a0', 'val', '2'), last)).toBeNull();
  });
});
