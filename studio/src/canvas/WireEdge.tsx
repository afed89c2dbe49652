// A wire with the shape and dtype of what goes through it.

import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from '@xyflow/react';
import { memo } from 'react';
import { specText } from '../format';
import { useBlock } from '../store/watch';
import type { WireItem } from './items';
import { labelPlace } from './labels';

export const WireEdge = memo(function WireEdge(props: EdgeProps<WireItem>) {
  const { id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data, selected } = props;
  const [block, pin, index] = data?.wire.from ?? ['', ''];
  const label = useBlock(block, (state) => {
    const tensors = state.checks.get(block)?.tensors;
    const spec = (index === undefined ? undefined : tensors?.get(`${pin}[${index}]`)) ?? tensors?.get(pin);
    return spec ? specText(spec) : '';
  });
  const [path] = getBezierPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition });
  const text = index === undefined ? label : `[${index}] ${label}`;
  const place = labelPlace(text, [sourceX, sourceY], [targetX, targetY], index !== undefined);
  return (
    <g className={selected ? 'wire chosen' : 'wire'} data-testid={`wire-${block}-${pin}-${data?.wire.to.join('-')}`}>
      <BaseEdge id={id} path={path} interactionWidth={16} />
      {place && (
        <EdgeLabelRenderer>
          <span className={selected ? 'wire-label chosen' : 'wire-label'} style={{ transform: `${place.anchor === 'end' ? 'translateX(-100%) ' : ''}translate(${place.x}px, ${place.y}px) translateY(-100%)` }}>{text}</span>
        </EdgeLabelRenderer>
      )}
    </g>
  );
});
