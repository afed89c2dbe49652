// A pin: where wires start and end. Tab reaches it, and `c` on an output opens the list of inputs.

import { Handle, Position } from '@xyflow/react';
import { targetKey } from '../store/rules';
import { useBlock } from '../store/watch';

interface Props {
  id: string;
  name: string;
  side: 'in' | 'out';
  wired: boolean;
}

export function Pin({ id, name, side, wired }: Props) {
  const input = side === 'in';
  const unfit = useBlock(id, (state) => input && state.drag?.answers.get(targetKey([id, name]))?.fits === false);
  const drawn = useBlock(id, (state) => state.drag !== null && input && state.drag.from[0] === id);
  const state = `${wired ? ' wired' : ''}${unfit || drawn ? ' unfit' : ''}`;
  return (
    <Handle
      type={input ? 'target' : 'source'}
      position={input ? Position.Left : Position.Right}
      id={name}
      className={`pin pin-${side}${state}`}
      tabIndex={0}
      role="button"
      aria-label={`${input ? 'input' : 'output'} ${name} of ${id}`}
      data-testid={`pin-${id}-${name}`}
      data-pin={JSON.stringify([id, name, side])}
    />
  );
}
