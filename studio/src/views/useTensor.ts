// A result in full, fetched once per run, block, pin and version however many views show it.

import { useEffect, useState } from 'react';
import { api } from '../api/client';
import type { TensorData, TensorRef } from '../api/types';

export interface Loaded<T> {
  value: T | null;
  problem: string | null;
  /** True while the answer belongs to an older question, or to none. */
  waiting: boolean;
}

// A version of a result never changes, so the promise is the cache. The oldest leave first.
const kept = new Map<string, Promise<TensorData>>();
const KEPT = 32;

/** The version is any text that changes when the numbers do: a page that trains steps on within a run. */
export function keyOf({ run, block, pin }: TensorRef, version: string): string {
  return JSON.stringify([run, block, pin, version]);
}

export function loadTensor(where: TensorRef, version = ''): Promise<TensorData> {
  const key = keyOf(where, version);
  const known = kept.get(key);
  if (known) return known;
  const asked = api.tensor(where);
  kept.set(key, asked);
  // A failure is not an answer: the next view asks again.
  asked.catch(() => kept.delete(key));
  const oldest = kept.keys().next();
  if (kept.size > KEPT && !oldest.done) kept.delete(oldest.value);
  return asked;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Answer to an asynchronous question, asked again when the key changes; the last question wins.
 * With `keep` the older answer stands until the new one comes.
 */
export function useAnswer<T>(key: string, ask: (signal: AbortSignal) => Promise<T>, keep = false): Loaded<T> {
  const [answer, setAnswer] = useState<{ key: string | null; value: T | null; problem: string | null }>({
    key: null,
    value: null,
    problem: null,
  });
  useEffect(() => {
    const control = new AbortController();
    ask(control.signal).then(
      (value) => {
        if (!control.signal.aborted) setAnswer({ key, value, problem: null });
      },
      (error: unknown) => {
        if (!control.signal.aborted) setAnswer({ key, value: null, problem: messageOf(error) });
      },
    );
    return () => control.abort();
    // The key says everything `ask` depends on.
  }, [key]);
  if (answer.key === key) return { ...answer, waiting: false };
  return { value: keep ? answer.value : null, problem: null, waiting: true };
}

/** While the next version is on its way the last one stands. */
export function useTensor(where: TensorRef, version = ''): Loaded<TensorData> {
  return useAnswer(keyOf(where, version), () => loadTensor(where, version), true);
}
