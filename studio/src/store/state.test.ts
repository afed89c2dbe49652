import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Check } from '../api/types';
import { valueAt } from '../table';
import * as actions from './actions';
import { amend, checked, edit, get, initial, isDirty, openPage, redoStep, select, set, undoStep } from './state';
import { ROWS, samplePage } from './samples';

beforeEach(() => {
  vi.useFakeTimers();
  const page = samplePage();
  set({ ...initial, page, saved: page, rows: ROWS }, true);
});

describe('undo and redo', () => {
  it('go back and forth', () => {
    const before = get().page;
    actions.setText('a', 'val', '5');
    const after = get().page;
    undoStep();
    expect(get().page).toBe(before);
    redoStep();
    expect(get().page).toBe(after);
    redoStep();
    expect(get().page).toBe(after);
  });
  it('take letters typed one after the other as one step', () => {
    for (const text of ['5', '55', '555']) actions.setText('a', 'val', text);
    undoStep();
    expect(valueAt(get().page.blocks[0]?.pins, 'val')).toBe('1');
  });
  it('take letters typed after a pause, or elsewhere, as another', () => {
    actions.setText('a', 'val', '5');
    vi.advanceTimersByTime(2000);
    actions.setText('a', 'val', '56');
    actions.setText('b', 'features', 'x');
    undoStep();
    undoStep();
    expect(valueAt(get().page.blocks[0]?.pins, 'val')).toBe('5');
  });
  it('forget the future after an edit', () => {
    actions.setText('a', 'val', '5');
    undoStep();
    actions.setText('b', 'features', 'x');
    redoStep();
    expect(valueAt(get().page.blocks[0]?.pins, 'val')).toBe('1');
  });
  it('take a block dragged as one step', () => {
    edit((page) => ({ ...page, name: 'moving' }));
    amend((page) => ({ ...page, name: 'moved' }));
    undoStep();
    expect(get().page.name).toBe('sample');
  });
  it('choose no block that is gone', () => {
    const row = ROWS.get('Relu');
    if (row) actions.addFromPalette(row, [0, 0]);
    expect([...get().blocks]).toEqual(['relu']);
    undoStep();
    expect(get().blocks.size).toBe(0);
  });
  it('bring back the page before another was opened', () => {
    openPage({ ...samplePage(), name: 'other' }, true);
    undoStep();
    expect(get().page.name).toBe('sample');
  });
});

describe('unsaved changes', () => {
  it('are what differs from what was saved', () => {
    expect(isDirty(get())).toBe(false);
    actions.setText('a', 'val', '5');
    expect(isDirty(get())).toBe(true);
    undoStep();
    expect(isDirty(get())).toBe(false);
  });
});

describe('copies', () => {
  it('are chosen, and each lies a little further', () => {
    select(['a', 'b']);
    const text = actions.copyText() ?? '';
    expect(actions.pasteText(text)).toBe(true);
    expect([...get().blocks]).toEqual(['a_2', 'b_2']);
    actions.pasteText(text);
    expect(get().page.blocks.slice(-4).map((block) => block.at?.[0])).toEqual([32, 232, 64, 264]);
    expect(actions.pasteText('hello')).toBe(false);
  });
});

describe('answers of the server', () => {
  const answer = (shape: number[]): Check => ({
    ms: 1, notes: [],
    blocks: new Map([
      ['a', { problem: null, notes: [], tensors: new Map([['output', { dtype: 'DT_FLOAT', shape }]]) }],
      ['b', { problem: 'no', notes: [], tensors: new Map() }],
    ]),
  });
  it('that did not change stay the same objects', () => {
    checked(answer([1]));
    const before = get().checks;
    checked(answer([1]));
    expect(get().checks).toBe(before);
    checked(answer([2]));
    expect(get().checks.get('a')).not.toBe(before.get('a'));
    expect(get().checks.get('b')).toBe(before.get('b'));
  });
});

describe('renaming', () => {
  it('follows the selection and tells what is wrong', () => {
    select(['b']);
    expect(actions.renameBlock('b', 'act')).toBe(true);
    expect([...get().blocks]).toEqual(['act']);
    expect(actions.renameBlock('act', 'a')).toBe(false);
    expect(get().notices.at(-1)?.text).toBe('act keeps its id: another block has the id a');
  });
});
