import { describe, expect, it } from 'vitest';
import { clipboardText, excerpt, paste } from './clipboard';
import { pageOfText } from './reading';
import { samplePage } from './samples';

describe('copying', () => {
  it('takes the wires between the blocks copied', () => {
    expect(excerpt(samplePage(), new Set(['a', 'b'])).wires).toEqual([{ from: ['a', 'output'], to: ['b', 'features'] }]);
  });
});

describe('pasting', () => {
  it('gives free ids to blocks and their wires', () => {
    const page = samplePage();
    const text = clipboardText(page, new Set(['a', 'b']));
    const blocks = pageOfText(text);
    const once = blocks && paste(page, blocks, [32, 32]);
    expect(once?.ids).toEqual(['a_2', 'b_2']);
    expect(once?.page.wires?.at(-1)).toEqual({ from: ['a_2', 'output'], to: ['b_2', 'features'] });
    expect(once?.page.blocks.at(-2)?.at).toEqual([32, 32]);
    const twice = blocks && once && paste(once.page, blocks, [64, 64]);
    expect(twice?.ids).toEqual(['a_3', 'b_3']);
    const all = twice?.page.blocks.map((block) => block.id) ?? [];
    expect(new Set(all).size).toBe(all.length);
  });
  it('keeps which item of a list a wire takes', () => {
    const page = samplePage();
    page.wires = [{ from: ['a', 'output', 3], to: ['b', 'features'] }];
    expect(paste(page, page, [0, 0]).page.wires?.at(-1)?.from).toEqual(['a_2', 'output', 3]);
  });
});
