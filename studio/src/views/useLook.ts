// Which slice of a tensor a view shows, kept between runs.

import { useState } from 'react';
import type { Look } from './AxisControls';
import { glanceSlice, guessLayout } from './axes';
import type { Index } from './indices';

/** Layout and slice; a new shape starts anew, the same shape of the next run keeps its place. */
export function useLook(shape: Index, hint: string) {
  const start = (): Look => {
    const layout = guessLayout(shape, hint);
    return { layout, slice: glanceSlice(shape, layout) };
  };
  const [look, setLook] = useState<Look>(start);
  const key = shape.join();
  const [seen, setSeen] = useState(key);
  if (seen !== key) {
    const fresh = start();
    setSeen(key);
    setLook(fresh);
    return [fresh, setLook] as const;
  }
  return [look, setLook] as const;
}
