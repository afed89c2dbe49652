// Unsaved work in the browser's own storage, one draft per tab: it survives a reload, a crash and a new server.

import type { Page } from '../api/types';
import { pageOfText } from './reading';

export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

export interface Draft {
  tab: string;
  page: Page;
  file: string | null;
  when: number;
}

const PREFIX = 'convgrad-draft:';
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
    const value = JSON.parse(text) as { page?: unknown; file?: unknown; when?: unknown };
    const page = typeof value.page === 'string' ? pageOfText(value.page) : null;
    if (!page) return null;
    return { tab, page, file: typeof value.file === 'string' ? value.file : null, when: Number(value.when) || 0 };
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
