// The histogram of a result as bars, from its summary alone: nothing is fetched.

import { useState } from 'react';
import type { Summary } from '../api/types';
import { layoutBars, placeOf } from './histogram';
import { formatCount, formatNumber } from './numbers';
import { useWidth } from './useSize';

const LEFT = 40;
const BOTTOM = 20;
const TOP = 8;

export function HistogramChart({ summary, compact = false }: { summary: Summary; compact?: boolean }) {
  const [logarithmic, setLogarithmic] = useState(false);
  const [pointed, setPointed] = useState<number | null>(null);
  const [box, width] = useWidth<HTMLDivElement>(compact ? 170 : 420);
  const { edges, counts } = summary.histogram;
  const left = compact ? 4 : LEFT;
  const right = compact ? 4 : 10;
  const inner = { width: Math.max(40, width - left - right), height: compact ? 70 : 180 };
  const bars = layoutBars(summary.histogram, inner.width, inner.height, logarithmic);
  const most = counts.reduce((top, count) => Math.max(top, count), 0);
  const mean = placeOf(summary.histogram, summary.mean, inner.width);
  const zero = placeOf(summary.histogram, 0, inner.width);
  const bar = pointed === null ? undefined : bars[pointed];
  if (most === 0) return <p className="v-dim">There is no finite number to count.</p>;
  return (
    <div ref={box} className="v-chart">
      <svg
        width={width}
        height={inner.height + TOP + BOTTOM}
        role="img"
        aria-label={`histogram of ${counts.length} bins`}
        onPointerLeave={() => setPointed(null)}
      >
        <g transform={`translate(${left}, ${TOP})`}>
          {!compact && (
            <>
              <text className="v-tick" x={-6} y={4} textAnchor="end">
                {formatCount(most)}
              </text>
              <text className="v-tick" x={-6} y={inner.height} textAnchor="end">
                0
              </text>
            </>
          )}
          {bars.map((one, at) => (
            <g key={at} onPointerEnter={() => setPointed(at)}>
              <rect className="v-catch" x={one.x} y={0} width={one.width} height={inner.height} />
              <rect
                className={at === pointed ? 'v-column v-pointed' : 'v-column'}
                x={one.x + Math.min(0.5, one.width / 8)}
                y={one.y}
                width={Math.max(0.5, one.width - 1)}
                height={one.height}
              />
            </g>
          ))}
          <line className="v-axis" x1={0} x2={inner.width} y1={inner.height} y2={inner.height} />
          {zero !== null && <line className="v-zeroline" x1={zero} x2={zero} y1={0} y2={inner.height} />}
          {mean !== null && <line className="v-mean" x1={mean} x2={mean} y1={0} y2={inner.height} />}
          <text className="v-tick" x={0} y={inner.height + 14}>
            {formatNumber(edges[0], compact ? 3 : 6)}
          </text>
          <text className="v-tick" x={inner.width} y={inner.height + 14} textAnchor="end">
            {formatNumber(edges[edges.length - 1], compact ? 3 : 6)}
          </text>
        </g>
      </svg>
      <div className="v-under">
        {bar ? (
          <>
            <b>{formatCount(bar.count)}</b>
            {` from ${formatNumber(bar.low, compact ? 3 : 6)} to ${formatNumber(bar.high, compact ? 3 : 6)}`}
          </>
        ) : (
          <span className="v-dim">
            {compact ? `${counts.length} bins` : `${counts.length} bins; the line is the mean`}
          </span>
        )}
        {!compact && (
          <label className="v-right">
            <input type="checkbox" checked={logarithmic} onChange={(event) => setLogarithmic(event.target.checked)} />
            logarithm of counts
          </label>
        )}
      </div>
    </div>
  );
}
