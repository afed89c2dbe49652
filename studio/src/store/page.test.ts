import { describe, expect, it } from 'vitest';
import { addBlock, freeId, idFor, moveBy, newBlock, remove, rename, sameMeaning, setIndex, setPin, wireIds } from './page';
import { ROWS, samplePage } from './samples';

describe('ids', () => {
  it('are counted up from the stem', () => {
    expect(freeId('conv', new Set())).toBe('conv');
    expect(freeId('conv', new Set(['conv']))).toBe('conv_2');
    expect(freeId('conv_2', new Set(['conv', 'conv_2']))).toBe('conv_3');
  });
  it('follow the type', () => {
    expect(idFor('Conv2DBackpropInput')).toBe('conv2d_backprop_input');
    expect(idFor('DepthwiseConv2dNativeBackpropFilter')).toBe('depthwise_conv2d_native_backprop_filter');
    expect(idFor('AddN')).toBe('add_n');
  });
});

describe('a new block', () => {
  it('starts with the defaults of its row, on the grid', () => {
    const row = ROWS.get('Conv2D');
    expect(row && newBlock(row, 'x', [13, 21])).toEqual({
      id: 'x', type: 'Conv2D', at: [16, 24],
      pins: { strides: '1,1,1,1', attrs: 'data_format_ = NHWC; dilations_ = {1,1,1,1}' },
    });
  });
});

describe('edits', () => {
  it('share the blocks they leave alone', () => {
    const page = samplePage();
    const next = setPin(page, 'a', 'val', '2');
    expect(next.blocks[0]).not.toBe(page.blocks[0]);
    expect(next.blocks[1]).toBe(page.blocks[1]);
    expect(next.wires).toBe(page.wires);
    expect(setPin(next, 'a', 'val', '2')).toBe(next);
  });
  it('rename the ends of wires too, items of lists included', () => {
    const page = setIndex(samplePage(), wireIds(samplePage())[1] ?? '', 2);
    const next = rename(page, 'b', 'act');
    expect(typeof next === 'string' ? [] : next.wires).toEqual([
      { from: ['a', 'output'], to: ['act', 'features'] },
      { from: ['act', 'activations', 2], to: ['c', 'inputs'] },
    ]);
  });
  it('refuse ids that are taken or empty', () => {
    expect(rename(samplePage(), 'b', 'a')).toBe('another block has the id a');
    expect(rename(samplePage(), 'b', ' ')).toBe('a block needs an id');
  });
  it('remove the wires of a removed block', () => {
    const next = remove(samplePage(), new Set(['b']), new Set());
    expect(next.blocks.map((block) => block.id)).toEqual(['a', 'c']);
    expect(next.wires).toEqual([]);
  });
  it('remove one of two equal wires', () => {
    const page = samplePage();
    page.wires?.push({ from: ['b', 'activations'], to: ['c', 'inputs'] });
    const names = wireIds(page);
    expect(new Set(names).size).toBe(3);
    expect(remove(page, new Set(), new Set([names[2] ?? ''])).wires).toEqual(samplePage().wires);
  });
});

describe('the meaning of a page', () => {
  it('is not where its blocks are or what it is called', () => {
    const page = samplePage();
    expect(sameMeaning(page, moveBy(page, new Set(['a']), 8, 0))).toBe(true);
    expect(sameMeaning(page, { ...page, name: 'other' })).toBe(true);
  });
  it('is its blocks, texts and wires', () => {
    const page = samplePage();
    expect(sameMeaning(page, setPin(page, 'a', 'val', '2'))).toBe(false);
    expect(sameMeaning(page, remove(page, new Set(), new Set([wireIds(page)[0] ?? ''])))).toBe(false);
    expect(sameMeaning(page, addBlock(page, { id: 'd', type: 'Relu' }))).toBe(false);
  });
});
