// @vitest-environment jsdom
// What is left when a page cannot be drawn: words, the page as a download, ways to go on, and a start that does not fail again.

import { act } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findDraft } from '../store/autosave';
import * as actions from '../store/actions';
import { emptyPage } from '../store/page';
import { samplePage } from '../store/samples';
import { begin } from '../store/start';
import { get, initial, openPage, set, useStudio } from '../store/state';
import { Boundary } from './Boundary';

/** Draws every page but those with a block called bad. */
function Fragile() {
  const page = useStudio((state) => state.page);
  if (page.blocks.some((block) => block.id === 'bad')) throw new TypeError('bad cannot be drawn');
  return <p>{page.blocks.map((block) => block.id).join(' ')}</p>;
}

let root: Root;
let ends: (() => void)[] = [];
const start = () => act(async () => void ends.push(await begin()));
const text = () => document.body.textContent ?? '';
const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const press = (testid: string) => act(async () => find(testid)?.click());
const asides = () => Object.keys(localStorage).filter((key) => key.startsWith('convgrad-aside:'));
const wait = (ms: number) => act(async () => vi.advanceTimersByTimeAsync(ms));

beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  vi.stubGlobal('fetch', async (path: string) => {
    if (!String(path).endsWith('start')) return new Response('{"ms":1,"notes":[],"blocks":{}}');
    return new Response(JSON.stringify({ version: '1', file: null, page: null, blocks: [], gallery: [], dtypes: [] }));
  });
  localStorage.clear();
  sessionStorage.clear();
  set(initial, true);
  document.body.innerHTML = '<div></div>';
  root = createRoot(document.body.firstElementChild ?? document.body);
  await act(async () => root.render(<Boundary><Fragile /></Boundary>));
  await start();
  act(() => openPage(samplePage(), true));
});

afterEach(async () => {
  await act(async () => root.unmount());
  for (const end of ends) end();
  ends = [];
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const fail = () => act(async () => void actions.renameBlock('a', 'bad'));

it('says what failed and offers the page', async () => {
  expect(text()).toBe('a b c');
  await fail();
  expect(find('crash-error')?.textContent).toBe('bad cannot be drawn');
  const made: string[] = [];
  vi.stubGlobal('Blob', class { constructor(parts: string[]) { made.push(...parts); } });
  vi.stubGlobal('URL', { createObjectURL: () => 'blob:x', revokeObjectURL: () => undefined });
  const names: string[] = [];
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function click(this: HTMLAnchorElement) {
    names.push(this.download);
  });
  await press('crash-download');
  expect(names).toEqual(['sample.json']);
  expect(JSON.parse(made.join('')).blocks[0].id).toBe('bad');
});

it('puts the work aside, where the next start does not open it', async () => {
  await fail();
  await wait(2000);
  expect(asides()).toHaveLength(1);
  expect(findDraft(localStorage, sessionStorage.getItem('convgrad-tab') ?? '', new Set(), null, Date.now())).toBeNull();
  window.dispatchEvent(new Event('pagehide'));
  expect(Object.keys(localStorage).filter((key) => key.startsWith('convgrad-draft:'))).toEqual([]);
});

it('goes on after the last step is undone', async () => {
  await fail();
  await press('crash-undo');
  expect(text()).toBe('a b c');
  await wait(2000);
  expect(asides()).toEqual([]);
});

it('tries again as often as one likes', async () => {
  await fail();
  for (let i = 0; i < 3; i++) {
    await wait(100);
    await press('crash-again');
    expect(find('crash')).not.toBeNull();
  }
  await wait(2000);
  expect(asides()).toHaveLength(1);
  expect(Object.keys(localStorage).filter((key) => key.startsWith('convgrad-draft:'))).toEqual([]);
});

it('starts empty, with no step that leads back', async () => {
  await fail();
  await press('crash-discard');
  expect(find('crash')).toBeNull();
  expect(get().page).toEqual(emptyPage());
  expect(get().history.past).toEqual([]);
  await wait(2000);
  expect(Object.keys(localStorage).filter((key) => key.startsWith('convgrad-'))).toEqual([]);
});

it('offers the work at the next start', async () => {
  await fail();
  await press('crash-undo');
  await fail();
  act(() => set(initial, true));
  await start();
  const notice = get().notices.at(-1);
  expect(notice?.text).toContain('The studio failed with unsaved work');
  expect(notice?.actions.map(({ title }) => title)).toEqual(['Open it', 'Download it', 'Delete it']);
  expect(get().page.blocks).toEqual([]);
  act(() => notice?.actions[2]?.run());
  expect(asides()).toEqual([]);
});
