import { describe, expect, it } from 'vitest';
import { asideOf, dropAside, dropDraft, findDraft, putAside, readDraft, takeDraft, writeDraft } from './autosave';
import { FakeStorage, samplePage } from './samples';

const draft = (tab: string, when: number, file: string | null = null) => ({ tab, page: samplePage(), file, when });
const NONE = new Set<string>();

describe('drafts', () => {
  it('come back as they were', () => {
    const store = new FakeStorage();
    expect(writeDraft(store, draft('t', 5))).toBe(true);
    expect(readDraft(store, 't')).toEqual(draft('t', 5));
    dropDraft(store, 't');
    expect(readDraft(store, 't')).toBeNull();
  });
  it('say if there is no room', () => {
    expect(writeDraft(new FakeStorage(10), draft('t', 5))).toBe(false);
  });
  it('that are broken are none', () => {
    const store = new FakeStorage();
    store.setItem('convgrad-draft:t', '{"page": 3');
    expect(readDraft(store, 't')).toBeNull();
    store.setItem('convgrad-draft:t', '{"page": "[]"}');
    expect(readDraft(store, 't')).toBeNull();
  });
});

describe('after a reload or a crash', () => {
  it('a tab finds its own draft', () => {
    const store = new FakeStorage();
    writeDraft(store, draft('mine', 5, 'other.json'));
    writeDraft(store, draft('newer', 9));
    expect(findDraft(store, 'mine', NONE, null, 10)?.tab).toBe('mine');
  });
  it('a new tab finds the newest that no open tab holds, of the same file', () => {
    const store = new FakeStorage();
    writeDraft(store, draft('old', 1));
    writeDraft(store, draft('new', 2));
    writeDraft(store, draft('open', 3));
    writeDraft(store, draft('file', 4, 'x.json'));
    expect(findDraft(store, 'me', new Set(['open', 'me']), null, 10)?.tab).toBe('new');
    expect(findDraft(store, 'me', NONE, 'x.json', 10)?.tab).toBe('file');
    expect(findDraft(store, 'me', NONE, 'y.json', 10)).toBeNull();
  });
  it('drafts of last month are left alone', () => {
    const store = new FakeStorage();
    writeDraft(store, draft('old', 1));
    expect(findDraft(store, 'me', NONE, null, 31 * 24 * 3600 * 1000)).toBeNull();
  });
});

describe('work the studio failed with', () => {
  const DAY = 24 * 3600 * 1000;
  it('is put aside as it is, and no draft any more', () => {
    const store = new FakeStorage();
    writeDraft(store, draft('t', 5, 'x.json'));
    const key = putAside(store, 't', 7);
    expect(findDraft(store, 't', NONE, 'x.json', 8)).toBeNull();
    expect(asideOf(store, 'x.json', 8)).toEqual([{ key, text: JSON.stringify(samplePage()), page: samplePage(), when: 7 }]);
    expect(asideOf(store, null, 8)).toEqual([]);
    if (key !== null) dropAside(store, key);
    expect(asideOf(store, 'x.json', 8)).toEqual([]);
    expect(putAside(store, 't', 9)).toBeNull();
  });
  it('is a draft that was being opened and never shown', () => {
    const store = new FakeStorage();
    writeDraft(store, { ...draft('t', 5), opening: true });
    writeDraft(store, { ...draft('other', 6), opening: true });
    writeDraft(store, draft('good', 4));
    expect(takeDraft(store, 't', NONE, null, 8)?.tab).toBe('good');
    expect(asideOf(store, null, 8)).toHaveLength(2);
  });
  it('is a draft that cannot be read', () => {
    const store = new FakeStorage();
    store.setItem('convgrad-draft:t', 'half a dra');
    expect(takeDraft(store, 't', NONE, null, 8)).toBeNull();
    expect(asideOf(store, null, 8)).toMatchObject([{ text: 'half a dra', page: null }]);
  });
  it('of several times stands with the newest first, and goes after a fortnight', () => {
    const store = new FakeStorage();
    for (const when of [1, 2 * DAY, DAY]) {
      writeDraft(store, draft('t', when));
      putAside(store, 't', when);
    }
    expect(asideOf(store, null, 3 * DAY).map(({ when }) => when)).toEqual([2 * DAY, DAY, 1]);
    expect(asideOf(store, null, 15 * DAY).map(({ when }) => when)).toEqual([2 * DAY]);
    expect(store.length).toBe(1);
  });
});
