// A result in full, fetched once per run, block and pin however many views show it.

import { useEffect, useState } from 'react';
import { api } from '../api/client';
import type { TensorData, TensorRef } from '../api/types';

export interface Loaded<T> {
  value: T | null;
  problem: string | null;
  /** True while the answer belongs to an older question, or to none. */
  waiting: boolean;
}

// Results of a run never change, so the promise is the cache. The oldest leave first.
const kept = new Map<string, Promise<TensorData>>();
const KEPT = 32;

export function keyOf({ run, block, pin }: TensorRef): string {
  return JSON.stringify([run, block, pin]);
}

export function loadTensor(where: TensorRef): Promise<TensorData> {
  const key = keyOf(where);
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
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, keep = false): Loaded<T> {
  const [answer, setAnswer] = useState<{ key: string | null; value: T | null; problem: string | null }>({
    key: null,
    value: null,
    problem: null,
  });
  useEffect(() => {
    if (key === null) return undefined;
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

export function useTensor(where: TensorRef | null): Loaded<TensorData> {
  return useAnswer(where && keyOf(where), () =>
    where ? loadTensor(where) : Promise.reject(new Error('there is no result to show')),
  );
}
