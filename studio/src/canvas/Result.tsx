// The result of one output, on its block.

import { memo, useCallback, useMemo } from 'react';
import type { Summary } from '../api/types';
import { dtypeText, shapeText } from '../format';
import { blockOf } from '../store/page';
import { set } from '../store/state';
import { useBlock } from '../store/watch';
import { ResultView } from '../views';

const MOST_OPEN = 40;
const short = (value: number | null): string => (value === null ? '–' : Number(value.toPrecision(4)).toString());

interface Props {
  block: string;
  pin: string;
  summary: Summary;
}

export const Result = memo(function Result({ block, pin, summary }: Props) {
  const key = JSON.stringify([block, pin]);
  const run = useBlock(block, (state) => state.resultsRun);
  const open = useBlock(block, (state) => state.shown.get(key) ?? state.page.blocks.length <= MOST_OPEN);
  const stepping = useBlock(block, (state) => state.run?.state === 'running' && state.run.id === state.resultsRun);
  const type = useBlock(block, (state) => blockOf(state.page, block)?.type);
  const mark = useBlock(block, (state) => state.highlight.find((each) => each.block === block && each.pin === pin));
  const marked = useMemo(() => (mark ? [mark] : undefined), [mark]);
  const onHover = useCallback((index: number[] | null) => set({ hovered: index && { block, pin, index } }), [block, pin]);
  const onPick = useCallback((index: number[]) => set({ picked: { block, pin, index } }), [block, pin]);
  const toggle = () => set((state) => ({ shown: new Map(state.shown).set(key, !open) }));
  return (
    <div className="result nodrag" data-testid={`result-${block}-${pin}`}>
      <button type="button" className="result-head" aria-expanded={open} onClick={toggle} title={open ? 'Hide' : 'Show'}>
        <span className="caret">{open ? '▾' : '▸'}</span>
        <b>{pin}</b>
        <span>{dtypeText(summary.dtype)} {shapeText(summary.shape)}</span>
        {(!open || stepping) && <span>{short(summary.min)} … {short(summary.max)}</span>}
        {summary.nan + summary.inf > 0 && <span className="bad">{summary.nan} NaN, {summary.inf} inf</span>}
      </button>
      {open && run && !stepping && (
        <ResultView key={run} run={run} block={block} pin={pin} summary={summary} marked={marked} {...(type === undefined ? {} : { hint: type })} onHoverCell={onHover} onPickCell={onPick} />
      )}
    </div>
  );
});
