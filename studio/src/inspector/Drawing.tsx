// Numbers drawn by mouse: a grid for a Const, a Placeholder or a Variable of rank 2 to 4.

import type { Block } from '../api/types';
import { isTensor } from '../format';
import { setTensor } from '../store/actions';
import { pinOf } from '../store/page';
import { useStudio } from '../store/state';
import { GridEditor } from '../views';
import { countOf, numbersOf } from './tensors';

const MOST_NUMBERS = 1 << 16;

export function Drawing({ block, pin }: { block: Block; pin: string }) {
  const spec = useStudio((state) => state.checks.get(block.id)?.tensors.values().next().value);
  const value = pinOf(block, pin);
  const shape = isTensor(value) ? value.shape : (spec?.shape ?? []).map((size) => size ?? 1);
  const count = countOf(shape);
  if (shape.length < 2 || shape.length > 4 || !count || count > MOST_NUMBERS) return null;
  const numbers = isTensor(value) ? numbersOf(value) : [];
  if (!numbers) return null;
  const dtype = isTensor(value) ? value.dtype : (spec?.dtype ?? 'DT_FLOAT');
  return (
    <section>
      <h3>Draw</h3>
      {!isTensor(value) && <p className="quiet">Drawing replaces the text by numbers, all 0 at first.</p>}
      <GridEditor shape={shape} values={numbers} onChange={(data) => setTensor(block.id, pin, { dtype, shape: [...shape], data })} />
    </section>
  );
}
