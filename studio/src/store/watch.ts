// Listening to one block. On a page of 500 blocks a key changes one of them: asking every block whether it changed
// would cost more than drawing the one that did.

import { useCallback, useSyncExternalStore } from 'react';
import type { State } from './state';
import { get, useStudio } from './state';

const listeners = new Map<string, Set<() => void>>();

/** The blocks a change of the store may concern; null for all of them. */
export function concerned(now: State, before: State): Set<string> | null {
  for (const key of Object.keys(now) as (keyof State)[])
    if (now[key] !== before[key] && !QUIET.has(key)) return null;
  const ids = new Set<string>();
  if (now.page !== before.page) {
    if (now.page.wires !== before.page.wires || now.page.blocks.length !== before.page.blocks.length) return null;
    now.page.blocks.forEach((block, i) => {
      const old = before.page.blocks[i];
      if (old === block) return;
      ids.add(block.id);
      if (old) ids.add(old.id);
    });
  }
  if (now.checks !== before.checks) {
    for (const [id, check] of now.checks) if (check !== before.checks.get(id)) ids.add(id);
    for (const id of before.checks.keys()) if (!now.checks.has(id)) ids.add(id);
  }
  return ids;
}

/** What no block shows, or what is looked at block by block. */
const QUIET = new Set<keyof State>([
  'page', 'checks', 'blocks', 'wires', 'history', 'saved', 'file', 'checkMs', 'pageNotes', 'notices', 'panel', 'exported',
  'hovered', 'picked', 'sizes', 'theme', 'connectFrom', 'autoRun', 'steps', 'opened', 'online', 'ready', 'ranPage',
]);

useStudio.subscribe((now, before) => {
  const ids = concerned(now, before);
  if (ids) for (const id of ids) listeners.get(id)?.forEach((listener) => listener());
  else for (const group of listeners.values()) group.forEach((listener) => listener());
});

function listen(id: string, listener: () => void): () => void {
  const group = listeners.get(id) ?? new Set();
  listeners.set(id, group.add(listener));
  return () => {
    group.delete(listener);
    if (!group.size) listeners.delete(id);
  };
}

/** Like `useStudio`, for what belongs to one block: its own texts, its wires, what the server said of it. */
export function useBlock<T>(id: string, look: (state: State) => T): T {
  const subscribe = useCallback((listener: () => void) => listen(id, listener), [id]);
  return useSyncExternalStore(subscribe, () => look(get()));
}
