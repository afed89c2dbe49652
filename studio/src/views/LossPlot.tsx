// A curve that grows while a page trains: axes, a logarithmic switch, the last value.

import { useState, type PointerEvent } from 'react';
import { clamp } from './indices';
import { formatCount, formatNumber, formatShort } from './numbers';
import { axisFor, heightOf, pathOf, ticks, type Frame } from './plot';
import { useWidth } from './useSize';

export interface LossPlotProps {
  /** One number per step; null where it was not finite. */
  values: readonly (number | null)[];
  /** What is plotted. */
  name?: string;
  /** Small, for the block itself; decided by the width there is if not said. */
  compact?: boolean;
}

export function LossPlot({ values, name = 'loss', ...props }: LossPlotProps) {
  const [logarithmic, setLogarithmic] = useState(false);
  const [pointed, setPointed] = useState<number | null>(null);
  const [box, width] = useWidth<HTMLDivElement>(props.compact === false ? 420 : 190);
  const compact = props.compact ?? width < 280;
  const height = compact ? 90 : 220;
  const frame: Frame = {
    left: compact ? 34 : 52,
    top: 8,
    width: Math.max(40, width - (compact ? 40 : 64)),
    height: height - (compact ? 24 : 42),
  };
  const axis = axisFor(values, logarithmic);
  const lost = values.filter((value) => value === null || !Number.isFinite(value)).length;
  const hidden = logarithmic ? values.filter((value) => value !== null && value <= 0).length : 0;
  const step = pointed !== null && pointed < values.length ? pointed : values.length - 1;
  const value = values[step];
  const span = Math.max(1, values.length - 1);
  const x = (at: number) => frame.left + (frame.width * at) / span;
  const y = value === undefined ? null : heightOf(value, axis, frame);
  const steps = ticks(1, span + 1, compact ? 2 : 5).filter(Number.isInteger);
  const onPointer = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = (event.clientX - box.left) * (width / Math.max(1, box.width));
    setPointed(clamp(Math.round(((place - frame.left) / frame.width) * span), 0, values.length - 1));
  };
  return (
    <div ref={box} className={compact ? 'v-chart v-compact' : 'v-chart'} data-testid="loss-plot">
      <div className="v-under">
        <span>
          {values.length === 0 ? (
            <span className="v-dim">no step yet</span>
          ) : (
            <>
              {`${name} `}
              <b>{formatNumber(value)}</b>
              {/* On the block there is no room for what the axis says. */}
              {(!compact || pointed !== null) && (
                <span className="v-dim">{` at ${compact ? '' : 'step '}${formatCount(step + 1)}`}</span>
              )}
            </>
          )}
        </span>
        <label className="v-right nodrag">
          <input type="checkbox" checked={logarithmic} onChange={(event) => setLogarithmic(event.target.checked)} />
          log
        </label>
      </div>
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={`${name} over ${values.length} steps`}
        onPointerMove={onPointer}
        onPointerLeave={() => setPointed(null)}
      >
        {axis.ticks.map((tick) => {
          const at = heightOf(tick, axis, frame) ?? 0;
          return (
            <g key={tick}>
              <line className="v-gridline" x1={frame.left} x2={frame.left + frame.width} y1={at} y2={at} />
              <text className="v-tick" x={frame.left - 6} y={at + 3.5} textAnchor="end">
                {formatShort(tick)}
              </text>
            </g>
          );
        })}
        {steps.map((tick) => (
          <text key={tick} className="v-tick" x={x(tick - 1)} y={frame.top + frame.height + 14} textAnchor="middle">
            {formatCount(tick)}
          </text>
        ))}
        {!compact && (
          <text className="v-tick" x={frame.left + frame.width / 2} y={height - 4} textAnchor="middle">
            step
          </text>
        )}
        <path className="v-axis" fill="none" d={`M${frame.left},${frame.top}v${frame.height}h${frame.width}`} />
        <path className="v-curve" d={pathOf(values, axis, frame)} />
        {y !== null && (
          <>
            {pointed !== null && (
              <line className="v-zeroline" x1={x(step)} x2={x(step)} y1={frame.top} y2={frame.top + frame.height} />
            )}
            <circle className="v-dot" cx={x(step)} cy={y} r={3.5} />
          </>
        )}
      </svg>
      {lost > 0 && <p className="v-bad">{`${formatCount(lost)} of ${formatCount(values.length)} steps not finite.`}</p>}
      {hidden > 0 && (
        <p className="v-dim">{`${formatCount(hidden)} of ${formatCount(values.length)} steps not above 0: a logarithm leaves them out.`}</p>
      )}
    </div>
  );
}
