// Small pages and rows for tests.

import type { Page, PaletteRow } from '../api/types';
import { tableOf } from '../table';

const row = (type: string, inputs: [string, boolean][], outputs: string[], more: Partial<PaletteRow> = {}): PaletteRow => ({
  type, group: 'ops', summary: `About ${type}.`, settings: [], attributes: [], outputs,
  inputs: inputs.map(([name, list]) => ({ name, list, literal: !list })), ...more,
});

export const ROWS = new Map(
  [
    row('Const', [], ['output'], { settings: [{ name: 'val', kind: 'tensor', default: '0', choices: null }] }),
    row('Relu', [['features', false]], ['activations']),
    row('AddN', [['inputs', true]], ['sum']),
    row('Conv2D', [['input', false], ['filter', false]], ['output'], {
      settings: [{ name: 'strides', kind: 'ints', default: '1,1,1,1', choices: null }],
      attributes: [
        { name: 'data_format_', kind: 'string', default: 'NHWC', choices: ['NHWC', 'NCHW'] },
        { name: 'explicit_paddings_', kind: 'ints', default: '', choices: null },
        { name: 'dilations_', kind: 'ints', default: '{1,1,1,1}', choices: null },
      ],
    }),
  ].map((each) => [each.type, each]),
);

export function samplePage(): Page {
  return {
    format: 'convgrad-page', version: 1, name: 'sample',
    blocks: [
      { id: 'a', type: 'Const', at: [0, 0], pins: tableOf([['val', '1']]) },
      { id: 'b', type: 'Relu', at: [200, 40], pins: tableOf([]) },
      { id: 'c', type: 'AddN', at: [400, 120], pins: tableOf([]) },
    ],
    wires: [{ from: ['a', 'output'], to: ['b', 'features'] }, { from: ['b', 'activations'], to: ['c', 'inputs'] }],
  };
}

export class FakeStorage {
  private readonly kept = new Map<string, string>();
  constructor(readonly room = Infinity) {}
  get length(): number {
    return this.kept.size;
  }
  key(at: number): string | null {
    return [...this.kept.keys()][at] ?? null;
  }
  getItem(key: string): string | null {
    return this.kept.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    if (value.length > this.room) throw new Error('QuotaExceededError');
    this.kept.set(key, value);
  }
  removeItem(key: string): void {
    this.kept.delete(key);
  }
}
