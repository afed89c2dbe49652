// How a session begins, how unsaved work is kept, and what is left of both when the studio fails to draw a page.

import { ApiError, api } from '../api/client';
import type { Start } from '../api/types';
import { download, fileName } from '../download';
import { type Aside, asideOf, claimTab, dropAside, dropDraft, putAside, takeDraft, writeDraft } from './autosave';
import { noHistory } from './history';
import { emptyPage, sameMeaning } from './page';
import { checkSoon, words } from './server';
import { get, isDirty, nothingSaid, notify, openPage, set, started, useStudio } from './state';

let tab = '';
/** Nothing is kept while the studio cannot draw: what fails would be what the next start begins with. */
let paused = false;
/** Where the work is that the studio failed with. */
let aside: string | null = null;
let draftTimer: ReturnType<typeof setTimeout> | undefined;

function keepDraft(): void {
  if (paused) return;
  const state = get();
  if (!isDirty(state)) dropDraft(localStorage, tab);
  else if (!writeDraft(localStorage, { tab, page: state.page, file: state.file, when: Date.now() }))
    notify('problem', 'The browser has no room for a draft of this page: save it to a file.');
}

function keepSoon(): void {
  clearTimeout(draftTimer);
  draftTimer = setTimeout(keepDraft, 250);
}

/** Ask until somebody answers; null if the answer is a refusal. */
async function askStart(): Promise<Start | null> {
  for (;;) {
    try {
      return await api.start();
    } catch (error) {
      if (error instanceof ApiError && error.status !== 0) {
        notify('problem', words(error));
        return null;
      }
      set({ online: false });
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

/** Begin a session; what comes back ends it. */
export async function begin(): Promise<() => void> {
  [paused, aside] = [false, null];
  const claimed = await claimTab(sessionStorage);
  tab = claimed.tab;
  const start = await askStart();
  const end = start ? resumeWork(start, claimed.open) : () => undefined;
  set({ ready: true });
  return end;
}

function resumeWork(start: Start, open: ReadonlySet<string>): () => void {
  started(start);
  const page = start.page ?? emptyPage();
  set((state) => ({ page, saved: page, opened: state.opened + 1 }));
  const draft = takeDraft(localStorage, tab, open, start.file, Date.now());
  if (draft) {
    // Marked until it has been drawn: a page that the browser never comes back from must not be tried for ever.
    const kept = writeDraft(localStorage, { ...draft, tab, opening: true });
    if (kept && draft.tab !== tab) dropDraft(localStorage, draft.tab);
    openPage(draft.page, false);
    notify('info', 'Unsaved work was restored.', [{ title: 'Discard it', run: () => openPage(page, true) }]);
  }
  for (const each of asideOf(localStorage, start.file, Date.now()).slice(0, 3)) offer(each);
  checkSoon();
  return watch();
}

/** Tell of work that was put aside. It stays there until it is opened or deleted. */
function offer({ key, text, page, when }: Aside): void {
  const drop = () => dropAside(localStorage, key);
  const open = () => {
    if (page) openPage(page, false);
    drop();
  };
  notify('problem', `The studio failed with unsaved work on ${new Date(when).toLocaleString()}. It is kept, but not opened by itself.`, [
    ...(page ? [{ title: 'Open it', run: open }] : []),
    { title: 'Download it', run: () => download(fileName(page?.name ?? 'page'), text) },
    { title: 'Delete it', run: drop },
  ]);
}

function watch(): () => void {
  const listening = new AbortController();
  const end = useStudio.subscribe((state, before) => {
    if (state.page === before.page && state.saved === before.saved) return;
    if (!sameMeaning(state.page, before.page)) checkSoon();
    keepSoon();
  });
  window.addEventListener('pagehide', keepDraft, listening);
  document.addEventListener('visibilitychange', () => document.hidden && keepDraft(), listening);
  keepSoon();
  return () => {
    end();
    listening.abort();
    clearTimeout(draftTimer);
  };
}

/** The studio cannot draw the page: put unsaved work aside and keep no more. */
export function crashed(): void {
  keepDraft();
  paused = true;
  clearTimeout(draftTimer);
  const put = putAside(localStorage, tab, Date.now());
  if (put === null) return;
  if (put !== aside) forgetAside(); // that was the same work, or less of it
  aside = put;
}

/** Draw again, with nothing but the page. What was put aside is the draft again once that has gone well. */
export function resume(): void {
  paused = false;
  set({ ...nothingSaid(), panel: null, drag: null, renaming: null, exported: null, notices: [] });
  checkSoon(true);
  clearTimeout(draftTimer);
  draftTimer = setTimeout(() => {
    keepDraft();
    forgetAside();
  }, 250);
}

function forgetAside(): void {
  if (aside !== null) dropAside(localStorage, aside);
  aside = null;
}

/** Give the page up, with all steps that lead back to it. */
export function discard(): void {
  forgetAside();
  openPage(emptyPage(), true);
  set({ history: noHistory() });
  resume();
}
