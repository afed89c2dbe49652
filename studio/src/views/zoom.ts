// How large the views on the canvas are drawn. Pictures with letters are made for that size, or the letters are ragged.

import { useSyncExternalStore } from 'react';

let zoom = 1;
const listeners = new Set<() => void>();

/** Tell how large blocks are, once that rests: every picture with letters is drawn anew. */
export function setZoom(now: number): void {
  if (now === zoom) return;
  zoom = now;
  listeners.forEach((listener) => listener());
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The zoom of what is on a block; what stands beside the canvas has none. */
export function useZoom(onBlock: boolean): number {
  return useSyncExternalStore(listen, () => (onBlock ? zoom : 1));
}
