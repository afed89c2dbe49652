import { describe, expect, it } from 'vitest';
import { addBlock, remove, setPin } from './page';
import { samplePage } from './samples';
import { initial, type State } from './state';
import { concerned } from './watch';

const before: State = { ...initial, page: samplePage(), checks: new Map([['a', { problem: null, notes: [], tensors: new Map() }]]) };
const after = (change: Partial<State>): Set<string> | null => concerned({ ...before, ...change }, before);

describe('a change of the store concerns', () => {
  it('the block whose text changed', () => {
    expect(after({ page: setPin(before.page, 'a', 'val', '2') })).toEqual(new Set(['a']));
  });
  it('the blocks of which the server says something new, or nothing any more', () => {
    expect(after({ checks: new Map([...before.checks, ['b', { problem: 'x', notes: [], tensors: new Map() }]]) })).toEqual(new Set(['b']));
    expect(after({ checks: new Map() })).toEqual(new Set(['a']));
  });
  it('all blocks if wires, blocks or results came or went', () => {
    expect(after({ page: remove(before.page, new Set(['b']), new Set()) })).toBeNull();
    expect(after({ page: addBlock(before.page, { id: 'd', type: 'Relu' }) })).toBeNull();
    expect(after({ results: new Map() })).toBeNull();
    expect(after({ drag: { from: ['a', 'output'], answers: new Map(), why: null } })).toBeNull();
  });
  it('no block if it is about the frame', () => {
    expect(after({ checkMs: 3, panel: 'help', blocks: new Set(['a']) })).toEqual(new Set());
  });
});
