// Undo and redo by snapshots: pages share what did not change, so a snapshot costs a few pointers.

import type { Page } from '../api/types';

export interface History {
  past: Page[];
  future: Page[];
  /** What the last step was; the same step again shortly after belongs to it. */
  step: string | null;
  when: number;
}

export const MOST_STEPS = 500;
const TOGETHER_MS = 1000;

export const noHistory = (): History => ({ past: [], future: [], step: null, when: 0 });

/** Remember the page before a step; letters typed into one field one after the other are one step. */
export function remember(history: History, before: Page, step: string | null, now: number): History {
  const joins = step !== null && step === history.step && now - history.when < TOGETHER_MS && history.past.length > 0;
  const past = joins ? history.past : [...history.past, before].slice(-MOST_STEPS);
  return { past, future: [], step, when: now };
}

export function undo(history: History, page: Page): { history: History; page: Page } | null {
  const before = history.past.at(-1);
  if (!before) return null;
  const future = [page, ...history.future];
  return { history: { past: history.past.slice(0, -1), future, step: null, when: 0 }, page: before };
}

export function redo(history: History, page: Page): { history: History; page: Page } | null {
  const [after, ...future] = history.future;
  if (!after) return null;
  return { history: { past: [...history.past, page], future, step: null, when: 0 }, page: after };
}
