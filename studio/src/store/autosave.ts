// Unsaved work in the browser's own storage, one draft per tab: it survives a reload, a crash and a new server. A draft
// that the studio failed with is put aside: it is offered, but no longer opened by itself.

import type { Page } from '../api/types';
import { pageOfText } from './reading';

export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

export interface Draft {
  tab: string;
  page: Page;
  file: string | null;
  when: number;
  /** Being opened. One that still says so at the next start was never shown. */
  opening?: true;
}

/** A draft as the storage has it, if nobody else wrote there. */
type Kept = { page?: unknown; file?: unknown; when?: unknown; opening?: unknown } | null;

const PREFIX = 'convgrad-draft:';
const ASIDE = 'convgrad-aside:';
const OLDEST_MS = 14 * 24 * 3600 * 1000;

/** Write a draft; false if the storage is full. */
export function writeDraft(store: Store, draft: Draft): boolean {
  const text = JSON.stringify({ ...draft, page: JSON.stringify(draft.page) });
  try {
    store.setItem(PREFIX + draft.tab, text);
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(store: Store, tab: string): void {
  store.removeItem(PREFIX + tab);
}

export function readDraft(store: Store, tab: string): Draft | null {
  const text = store.getItem(PREFIX + tab);
  if (text === null) return null;
  try {
    const value = JSON.parse(text) as Kept;
    const page = typeof value?.page === 'string' ? pageOfText(value.page) : null;
    if (!value || !page) return null;
    const file = typeof value.file === 'string' ? value.file : null;
    return { tab, page, file, when: Number(value.when) || 0, ...(value.opening === true ? { opening: true } : {}) };
  } catch {
    return null;
  }
}

/** The draft to go on with: this tab's, else the newest of the same file that no open tab holds. */
export function findDraft(
  store: Store, tab: string, open: ReadonlySet<string>, file: string | null, now: number,
): Draft | null {
  const own = readDraft(store, tab);
  if (own) return own;
  const drafts: Draft[] = [];
  for (let i = 0; i < store.length; i++) {
    const key = store.key(i);
    if (!key?.startsWith(PREFIX) || open.has(key.slice(PREFIX.length))) continue;
    const draft = readDraft(store, key.slice(PREFIX.length));
    if (draft && draft.file === file && now - draft.when < OLDEST_MS) drafts.push(draft);
  }
  return drafts.sort((a, b) => b.when - a.when)[0] ?? null;
}

/** The same, for a start: a draft that cannot be read, or that was never shown when it was opened last, is put aside. */
export function takeDraft(
  store: Store, tab: string, open: ReadonlySet<string>, file: string | null, now: number,
): Draft | null {
  if (store.getItem(PREFIX + tab) !== null && readDraft(store, tab) === null) putAside(store, tab, now);
  for (;;) {
    const draft = findDraft(store, tab, open, file, now);
    if (!draft?.opening) return draft;
    if (putAside(store, draft.tab, now) === null) return null;
  }
}

/** Work put aside: its text as it was, and the page if that can be read. */
export interface Aside {
  key: string;
  text: string;
  page: Page | null;
  when: number;
}

/** Put the draft of a tab aside; the key it has there, or null where there was none or the storage refuses. */
export function putAside(store: Store, tab: string, now: number): string | null {
  const text = store.getItem(PREFIX + tab);
  if (text === null) return null;
  const key = `${ASIDE}${tab}:${now}`;
  store.removeItem(PREFIX + tab); // first, where there is room for one of the two alone
  try {
    store.setItem(key, text);
    return key;
  } catch {
    return null;
  }
}

/** What was put aside while this file was open, the newest first; what is too old goes. */
export function asideOf(store: Store, file: string | null, now: number): Aside[] {
  const keys = Array.from({ length: store.length }, (_, i) => store.key(i)).filter((key) => key?.startsWith(ASIDE));
  return keys.flatMap((key): Aside[] => {
    const when = Number(key?.slice(key.lastIndexOf(':') + 1));
    if (key === null || key === undefined) return [];
    if (!(now - when < OLDEST_MS)) {
      store.removeItem(key);
      return [];
    }
    const { page, file: of } = keptOf(store.getItem(key));
    return of === file ? [{ key, text: page, page: pageOfText(page), when }] : [];
  }).sort((a, b) => b.when - a.when);
}

/** The text of the page in a draft and its file; of something else the whole, as of no file. */
function keptOf(text: string | null): { page: string; file: string | null } {
  try {
    const value = JSON.parse(text ?? '') as Kept;
    if (typeof value?.page === 'string') return { page: value.page, file: typeof value.file === 'string' ? value.file : null };
  } catch {
    // No JSON: whatever it is, it is somebody's work.
  }
  return { page: text ?? '', file: null };
}

export function dropAside(store: Store, key: string): void {
  store.removeItem(key);
}

const TAB = 'convgrad-tab';
const LOCK = 'convgrad-tab:';

/** Hold a lock as long as the tab lives; false if another tab holds it. A page being reloaded lets go in a moment. */
function hold(locks: LockManager, name: string, patience: number): Promise<boolean> {
  return new Promise((resolve) => {
    const forever = () => {
      resolve(true);
      return new Promise<void>(() => undefined);
    };
    locks.request(name, { signal: AbortSignal.timeout(patience) }, forever).catch(() => resolve(false));
  });
}

/** The name of this tab and of all open ones. A lock tells an open tab from a closed one; a copied tab gets a new name. */
export async function claimTab(session: Pick<Storage, 'getItem' | 'setItem'>): Promise<{ tab: string; open: Set<string> }> {
  const locks = typeof navigator === 'undefined' ? undefined : navigator.locks;
  let tab = session.getItem(TAB);
  if (!tab || (locks && !(await hold(locks, LOCK + tab, 500)))) {
    tab = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    if (locks) await hold(locks, LOCK + tab, 500);
  }
  session.setItem(TAB, tab);
  const held = (await locks?.query())?.held ?? [];
  const open = new Set(held.flatMap(({ name }) => (name?.startsWith(LOCK) ? [name.slice(LOCK.length)] : [])));
  return { tab, open };
}
