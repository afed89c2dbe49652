import { describe, expect, it } from 'vitest';
import { tableOf } from '../table';
import { addWire } from './page';
import { pinsOf, refusal, targetsOf } from './rules';
import { ROWS, samplePage } from './samples';

const page = samplePage();

describe('a wire', () => {
  it('goes from an output to an input', () => {
    expect(refusal(page, ROWS, ['a', 'output'], ['c', 'inputs'])).toBeNull();
    expect(refusal(page, ROWS, ['a', 'val'], ['c', 'inputs'])).toBe('val of a is not an output');
    expect(refusal(page, ROWS, ['a', 'output'], ['c', 'sum'])).toBe('sum of c is not an input');
    expect(refusal(page, ROWS, ['a', 'output'], ['nobody', 'x'])).toBe('both ends of a wire are pins of blocks');
  });
  it('does not feed its own block', () => {
    expect(refusal(page, ROWS, ['c', 'sum'], ['c', 'inputs'])).toBe('a block does not feed itself');
  });
  it('has a pin for itself unless that is a list', () => {
    expect(refusal(page, ROWS, ['c', 'sum'], ['b', 'features'])).toBe('features of b has a wire already');
    expect(refusal(addWire(page, ['a', 'output'], ['c', 'inputs']), ROWS, ['a', 'output'], ['c', 'inputs'])).toBeNull();
  });
});

describe('targets', () => {
  it('are the free inputs, nearest first', () => {
    const more = { ...page, blocks: [...page.blocks, { id: 'far', type: 'Relu', at: [900, 0] as [number, number] }] };
    expect(targetsOf(more, ROWS, ['a', 'output'])).toEqual([['c', 'inputs'], ['far', 'features']]);
  });
});

describe('pins', () => {
  it('of an unknown block are those its page speaks of', () => {
    const pins = pinsOf({ id: 'x', type: 'Foreign', pins: tableOf([['size', '3']]) }, undefined, ['in', 'in'], ['out']);
    expect(pins.inputs.map((pin) => pin.name)).toEqual(['in']);
    expect(pins.settings).toEqual(['size']);
    expect(pins.outputs).toEqual(['out']);
  });
  it('have one field for all attributes', () => {
    expect(pinsOf({ id: 'x', type: 'Conv2D' }, ROWS.get('Conv2D'), [], []).settings).toEqual(['strides', 'attrs']);
  });
});
