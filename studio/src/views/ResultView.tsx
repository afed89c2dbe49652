// A result of a block: heat map, numbers, histogram, statistics. Compact on the block, large in a panel.

import { useEffect, useMemo, useState } from 'react';
import type { Summary } from '../api/types';
import { AxisControls } from './AxisControls';
import { cellOf, sliceShowing } from './axes';
import { extremesOf } from './colours';
import { HeatMap } from './HeatMap';
import { HistogramChart } from './HistogramChart';
import { sizeOf } from './indices';
import { marksOf, type Marked } from './marks';
import { NumberGrid } from './NumberGrid';
import { formatNumber, formatShape } from './numbers';
import { Statistics } from './Statistics';
import { useLook } from './useLook';
import { useWidth } from './useSize';
import { useTensor } from './useTensor';

export interface ResultViewProps {
  run: string;
  block: string;
  pin: string;
  summary: Summary;
  /** Cells to outline: of this result, or marks of all results of which this view takes its own. */
  marked?: Marked | undefined;
  /** Small, for the block itself; decided by the width there is if not said. */
  compact?: boolean | undefined;
  /** A hint for the layout, such as the block's type: "Conv2DBackpropFilter" gives a filter. */
  hint?: string;
  onHoverCell?: (index: number[] | null) => void;
  onPickCell?: (index: number[]) => void;
}

const TABS = ['heat map', 'numbers', 'histogram', 'statistics'] as const;
type Tab = (typeof TABS)[number];
/** Width in pixels from which there is room for every control. */
const LARGE = 320;
const SHORT: Record<Tab, string> = { 'heat map': 'map', numbers: '123', histogram: 'hist', statistics: 'stat' };

export function ResultView(props: ResultViewProps) {
  const { block, pin, summary } = props;
  const [tab, setTab] = useState<Tab>('heat map');
  const [box, width] = useWidth<HTMLDivElement>(0);
  const compact = props.compact ?? width < LARGE;
  return (
    <div ref={box} className={compact ? 'v-result v-compact' : 'v-result'} data-testid={`view-${block}-${pin}`}>
      <div className="v-tabs nodrag" role="tablist" aria-label={`views of ${block}.${pin}`}>
        {TABS.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            aria-selected={name === tab}
            title={name}
            onClick={() => setTab(name)}
          >
            {compact ? SHORT[name] : name}
          </button>
        ))}
        {!compact && <span className="v-right v-dim">{`${summary.dtype} ${formatShape(summary.shape)}`}</span>}
      </div>
      <div role="tabpanel" aria-label={tab}>
        {tab === 'histogram' && <HistogramChart summary={summary} compact={compact} />}
        {tab === 'statistics' && <Statistics summary={summary} compact={compact} />}
        {(tab === 'heat map' || tab === 'numbers') && (
          <Cells key={`${block} ${pin}`} {...props} compact={compact} tab={tab} />
        )}
      </div>
    </div>
  );
}

/** The two tabs that need every number. */
function Cells(props: ResultViewProps & { tab: 'heat map' | 'numbers' }) {
  const { run, block, pin, summary, marked, compact = false, tab } = props;
  const tensor = useTensor({ run, block, pin }, versionOf(summary));
  // The summary is at hand before the tensor is, and holds all of a small one.
  const shape = tensor.value?.shape ?? summary.shape;
  const data = tensor.value?.values ?? (sizeOf(shape) <= summary.values.length ? asNumbers(summary.values) : null);
  const [look, setLook] = useLook(shape, `${props.hint ?? ''} ${pin}`);
  const [local, setLocal] = useState(false);
  const whole = useMemo(() => extremesOf(data ?? []), [data]);
  const marks = useMemo(() => marksOf(marked, block, pin), [marked, block, pin]);
  const target = marks.current ?? marks.cells[0];
  const hidden = target && !marks.cells.some((index) => cellOf(look.slice, index)) ? target : (marks.current ?? null);

  useEffect(() => {
    // Follow marks into the slice that holds them; a hover must not fight the sliders otherwise.
    if (hidden) setLook((old) => ({ ...old, slice: sliceShowing(old.slice, hidden) }));
  }, [hidden, setLook]);

  if (tensor.problem)
    return (
      <p className="v-bad" role="alert">
        {tensor.problem}
      </p>
    );
  if (!data) return <p className="v-dim">fetching {formatShape(shape)} …</p>;
  if (sizeOf(shape) === 0) return <p className="v-dim">Empty: there are no cells in {formatShape(shape)}.</p>;
  if (compact && shape.length === 0) return <p className="v-scalar">{formatNumber(data[0])}</p>;
  const common = {
    shape,
    data,
    slice: look.slice,
    marked: marks.cells,
    current: marks.current,
    compact,
    label: `${block}.${pin}`,
    onHoverCell: props.onHoverCell,
    onPickCell: props.onPickCell,
  };
  return (
    <>
      <AxisControls shape={shape} look={look} onChange={setLook} compact={compact} />
      {tab === 'numbers' ? <NumberGrid {...common} /> : <HeatMap {...common} whole={whole} local={local} />}
      {tab === 'heat map' && !compact && shape.length > 2 && (
        <label className="v-local">
          <input type="checkbox" checked={local} onChange={(event) => setLocal(event.target.checked)} />
          colours by this slice alone
        </label>
      )}
    </>
  );
}

/** Differs as soon as the numbers do. */
function versionOf({ shape, min, max, mean, std }: Summary): string {
  return [shape, min, max, mean, std].join(' ');
}

const known = new WeakMap<readonly (number | null)[], Float64Array>();

/** The summary's numbers, the same array for the same summary so that nothing is drawn twice. */
function asNumbers(values: readonly (number | null)[]): Float64Array {
  const found = known.get(values) ?? Float64Array.from(values, (value) => value ?? Number.NaN);
  known.set(values, found);
  return found;
}
