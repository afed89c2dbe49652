// Numbers drawn by mouse: a grid for a Const or a Placeholder of rank 2 to 4.

import { type PointerEvent, useState } from 'react';
import type { Block } from '../api/types';
import { isTensor } from '../format';
import { setTensor } from '../store/actions';
import { useStudio } from '../store/state';
import { countOf, numbersOf, planesOf } from './tensors';

const MOST_CELLS = 64 * 64;

export function Drawing({ block, pin }: { block: Block; pin: string }) {
  const spec = useStudio((state) => Object.values(state.checks[block.id]?.tensors ?? {})[0]);
  const [plane, setPlane] = useState(0);
  const [ink, setInk] = useState('1');
  const value = block.pins?.[pin];
  const shape = isTensor(value) ? value.shape : (spec?.shape ?? []).map((size) => size ?? 1);
  const planes = planesOf(shape);
  if (!planes || planes.rows * planes.columns > MOST_CELLS || !countOf(shape)) return null;
  const numbers = isTensor(value) ? numbersOf(value) : null;
  if (isTensor(value) && !numbers) return null;
  const dtype = isTensor(value) ? value.dtype : (spec?.dtype ?? 'DT_FLOAT');
  const count = (planes.others[0] ?? 1) * (planes.others[1] ?? 1);
  const shown = Math.min(plane, count - 1);
  const data = numbers ?? new Array<number>(countOf(shape)).fill(0);
  const most = data.reduce((largest, number) => Math.max(largest, Math.abs(number)), 1e-30);

  const draw = (event: PointerEvent<HTMLElement>) => {
    const cell = document.elementFromPoint(event.clientX, event.clientY)?.getAttribute('data-cell');
    if (event.buttons !== 1 || cell === null || cell === undefined) return;
    const at = Number(cell);
    const number = event.shiftKey ? 0 : Number(ink) || 0;
    if (numbers && data[at] === number) return;
    setTensor(block.id, pin, { dtype, shape: [...shape], data: data.map((old, i) => (i === at ? number : old)) });
  };
  return (
    <section className="drawing">
      <h3>Draw</h3>
      <div className="form-row"><span>number</span><input className="field" value={ink} aria-label="Number to draw" onChange={(event) => setInk(event.target.value)} /></div>
      {count > 1 && <label className="form-row"><span>plane {shown + 1}/{count}</span><input type="range" min={0} max={count - 1} value={shown} onChange={(event) => setPlane(Number(event.target.value))} /></label>}
      <div className="grid" data-testid={`draw-${block.id}`} style={{ gridTemplateColumns: `repeat(${planes.columns}, 1fr)` }} onPointerDown={draw} onPointerMove={draw}>
        {Array.from({ length: planes.rows * planes.columns }, (_, i) => {
          const at = planes.at(shown, Math.floor(i / planes.columns), i % planes.columns);
          const number = data[at] ?? 0;
          const share = Math.round((Math.abs(number) / most) * 100);
          return <i key={at} data-cell={at} title={String(number)} style={{ background: `color-mix(in srgb, var(${number < 0 ? '--cold' : '--warm'}) ${share}%, var(--cell))` }} />;
        })}
      </div>
      <p className="quiet">{numbers ? 'Drag to draw; Shift erases.' : 'Drawing replaces the text by numbers, all 0 at first.'}</p>
    </section>
  );
}
