import { describe, expect, it } from 'vitest';
import { entriesOf } from '../table';
import { pageOfText } from './reading';
import { samplePage } from './samples';

const read = (change: object) => pageOfText(JSON.stringify({ ...samplePage(), ...change }));
const block = (change: object) => read({ blocks: [{ id: 'a', type: 'Const', ...change }], wires: [] });

describe('a page in a text', () => {
  it('comes back as it was', () => {
    expect(pageOfText(JSON.stringify(samplePage()))).toEqual(samplePage());
    expect(read({ wires: undefined })?.wires).toEqual([]);
  });
  it('may have pins of every kind', () => {
    const tensors = [
      { dtype: 'DT_FLOAT', shape: [2], data: [1, 2.5] }, { dtype: 'DT_STRING', shape: [1], data: ['x'] },
      { dtype: 'DT_BOOL', shape: [1], data: [true] }, { dtype: 'DT_DOUBLE', shape: [], base64: 'AAAAAAAA+H8=' },
      { text: '1', type: 'int', shape: [1], missing: true },
    ];
    for (const value of tensors) expect(entriesOf(block({ pins: { val: value } })?.blocks[0]?.pins)).toEqual([['val', value]]);
  });
  it('is refused where something would be drawn that is not what it should be', () => {
    const bad = [
      { pins: { val: null } }, { pins: { val: 3 } }, { pins: [] }, { pins: { val: { dtype: 'DT_FLOAT', shape: '2' } } },
      { pins: { val: { dtype: 3, shape: [] } } }, { pins: { val: { text: 3, type: 'int' } } }, { pins: { val: { dtype: 'DT_FLOAT', shape: [1], data: [null] } } },
      { id: 3 }, { type: null }, { at: [0] }, { at: ['0', '0'] }, { at: null },
    ];
    for (const change of bad) expect(block(change), JSON.stringify(change)).toBeNull();
    for (const wires of [[null], [{}], [{ from: ['a'], to: ['b', 'x'] }], [{ from: ['a', 'output', 'x'], to: ['b', 'x'] }], {}, null])
      expect(read({ wires }), JSON.stringify(wires)).toBeNull();
    for (const change of [{ name: 3 }, { size: [1] }, { dialect: {} }, { blocks: {} }, { version: 2 }])
      expect(read(change), JSON.stringify(change)).toBeNull();
  });
  it('is no other text', () => {
    for (const text of ['', 'hello', '{"format": "convgrad-page"}', '{"format":"convgrad-page","version":1,"blocks":[3]}', '"convgrad-page"', 'null convgrad-page'])
      expect(pageOfText(text)).toBeNull();
  });
});
