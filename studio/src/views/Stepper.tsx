// Play, pause, next, previous and a slider over the terms of a sum.

import { useEffect, useState } from 'react';
import { clamp } from './indices';

interface Props {
  count: number;
  /** null: all terms, none in particular. */
  step: number | null;
  onStep: (step: number | null) => void;
}

/** Milliseconds per step: short sums slowly enough to read, long ones within about 20 s. */
export function pace(count: number): number {
  return clamp(20000 / Math.max(1, count), 30, 700);
}

export function Stepper({ count, step, onStep }: Props) {
  const [playing, setPlaying] = useState(false);
  const last = count - 1;
  const ended = step !== null && step >= last;
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => {
      const next = step === null ? 0 : step + 1;
      onStep(Math.min(next, last));
      if (next >= last) setPlaying(false);
    }, pace(count));
    return () => clearTimeout(timer);
  }, [playing, step, last, count, onStep]);

  const go = (to: number | null) => {
    setPlaying(false);
    onStep(to);
  };
  const play = () => {
    if (playing) setPlaying(false);
    else {
      if (ended || step === null) onStep(0);
      setPlaying(last > 0);
    }
  };
  return (
    <div className="v-stepper" role="group" aria-label="step through the sum">
      <button
        type="button"
        title="previous term"
        aria-label="previous term"
        disabled={!step}
        onClick={() => go((step ?? 1) - 1)}
      >
        ◂
      </button>
      <button type="button" className="v-play" aria-label={playing ? 'pause' : 'play'} onClick={play}>
        {playing ? 'pause' : 'play'}
      </button>
      <button
        type="button"
        title="next term"
        aria-label="next term"
        disabled={ended}
        onClick={() => go(step === null ? 0 : step + 1)}
      >
        ▸
      </button>
      <input
        type="range"
        min={0}
        max={last}
        value={step ?? 0}
        aria-label="term"
        onChange={(event) => go(Number(event.target.value))}
      />
      <output>{step === null ? `${count} terms` : `${step + 1} of ${count}`}</output>
      <button
        type="button"
        disabled={step === null}
        title="mark all cells, none in particular"
        onClick={() => go(null)}
      >
        all
      </button>
    </div>
  );
}
