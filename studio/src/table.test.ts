import { beforeEach, describe, expect, it } from 'vitest';
import { checkOf, progressOf } from './api/answers';
import type { Page } from './api/types';
import { dtypeText, isTensor } from './format';
import { numbersOf } from './inspector/tensors';
import { readDraft, writeDraft } from './store/autosave';
import { clipboardText, paste } from './store/clipboard';
import { blockOf, pinOf, rename, setPin } from './store/page';
import { pageOfText } from './store/reading';
import { pinsOf } from './store/rules';
import { FakeStorage, ROWS, samplePage } from './store/samples';
import { checked, get, initial, set } from './store/state';
import { concerned } from './store/watch';
import { entriesOf, namesOf, tableOf, valueAt, withValue } from './table';

/** What a plain object has before anybody puts it there. */
const NAMES = ['__proto__', ...Object.getOwnPropertyNames(Object.prototype).filter((name) => name !== '__proto__')];

/** One block of this id with a pin of this name, as a file has it. */
const pageCalled = (name: string): string =>
  `{"format":"convgrad-page","version":1,"name":${JSON.stringify(name)},"blocks":[{"id":${JSON.stringify(name)},"type":${JSON.stringify(name)},"pins":{${JSON.stringify(name)}:"1"}}],"wires":[]}`;

describe.each(NAMES)('the name %s', (name) => {
  let page: Page;
  beforeEach(() => {
    page = pageOfText(pageCalled(name)) ?? samplePage();
    set({ ...initial, page, saved: page, rows: ROWS }, true);
  });

  it('is in no table until it is put there', () => {
    expect(valueAt(tableOf([['x', 1]]), name)).toBeUndefined();
    const table = withValue(tableOf([['x', 1]]), name, 2);
    expect(valueAt(table, name)).toBe(2);
    expect(entriesOf(table)).toEqual([['x', 1], [name, 2]]);
    expect(JSON.parse(JSON.stringify(table))).toEqual(JSON.parse(`{"x":1,"${name}":2}`));
    expect(namesOf(withValue(table, name, 3))).toEqual(['x', name]);
  });
  it('can be the id of a block and the name of its pin', () => {
    const block = blockOf(page, name);
    expect(block && pinOf(block, name)).toBe('1');
    const next = blockOf(setPin(page, name, name, '2'), name);
    expect(next && pinOf(next, name)).toBe('2');
    expect(next && pinsOf(next, undefined, [], []).settings).toEqual([name]);
    const renamed = rename(samplePage(), 'a', name);
    expect(typeof renamed !== 'string' && renamed.wires?.[0]?.from[0]).toBe(name);
  });
  it('on a block says nothing of its pins', () => {
    const block = { id: 'a', type: 'Const' };
    expect(pinOf(block, name)).toBeUndefined();
    expect(pinOf({ ...block, pins: JSON.parse('{}') }, name)).toBeUndefined();
  });
  it('is what the server says of it, and nothing before it has said something', () => {
    expect(get().checks.get(name)).toBeUndefined();
    const spec = '{"dtype":"DT_FLOAT","shape":[2]}';
    const answer = () => checkOf(JSON.parse(`{"ms":1,"notes":[],"blocks":{"${name}":{"problem":null,"notes":[],"tensors":{"${name}":${spec}}}}}`));
    const before = get();
    checked(answer());
    expect(get().checks.get(name)?.tensors.get(name)).toEqual(JSON.parse(spec));
    expect(concerned(get(), before)).toEqual(new Set([name]));
    const { checks } = get();
    checked(answer());
    expect(get().checks).toBe(checks);
  });
  it('has its own results, times and curves', () => {
    const progress = progressOf(JSON.parse(`{"state":"done","version":1,"ms":{"${name}":3},"results":{"${name}":{"${name}":{"dtype":"f"}}},"curves":{"${name}":[1]}}`));
    expect(progress.ms.get(name)).toBe(3);
    expect(progress.results.get(name)?.get(name)?.dtype).toBe('f');
    expect([...progress.curves]).toEqual([[name, [1]]]);
    expect(get().results.get(name) ?? get().times.get(name) ?? get().curves.get(name)).toBeUndefined();
  });
  it('survives drafts, copies and files', () => {
    const store = new FakeStorage();
    writeDraft(store, { tab: 't', page, file: null, when: 1 });
    expect(JSON.stringify(readDraft(store, 't')?.page)).toBe(JSON.stringify(page));
    expect(JSON.stringify(page)).toContain(`"pins":{${JSON.stringify(name)}:"1"}`);
    const copy = pageOfText(clipboardText(page, new Set([name])));
    expect(copy && paste(page, copy, [0, 0]).ids).toEqual([`${name}_2`]);
  });
  it('is a text where it is a dtype, and no kind of number', () => {
    const tensor = { dtype: name, shape: [1], base64: 'AAAA' };
    expect(isTensor(tensor)).toBe(true);
    expect(dtypeText(name)).toBe(name.toLowerCase());
    expect(numbersOf(tensor)).toBeNull();
  });
});
