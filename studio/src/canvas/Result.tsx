// The result of one output, on its block.

import { memo, useCallback } from 'react';
import type { Summary } from '../api/types';
import { dtypeText, shapeText } from '../format';
import { traceCell } from '../store/server';
import { set, useStudio } from '../store/state';
import { ResultView } from '../views';

const MOST_OPEN = 40;
const short = (value: number | null): string => (value === null ? '–' : Number(value.toPrecision(4)).toString());

interface Props {
  block: string;
  pin: string;
  summary: Summary;
}

export const Result = memo(function Result({ block, pin, summary }: Props) {
  const key = `${block} ${pin}`;
  const run = useStudio((state) => state.resultsRun);
  const open = useStudio((state) => state.shown[key] ?? state.page.blocks.length <= MOST_OPEN);
  const marked = useStudio((state) => state.highlight.find((mark) => mark.block === block && mark.pin === pin)?.cells);
  const onHoverCell = useCallback(
    (index: number[] | null) => void (run && traceCell(run, block, pin, index)),
    [run, block, pin],
  );
  const toggle = () => set((state) => ({ shown: { ...state.shown, [key]: !open } }));
  return (
    <div className="result nodrag" data-testid={`result-${block}-${pin}`}>
      <button type="button" className="result-head" aria-expanded={open} onClick={toggle} title={open ? 'Hide' : 'Show'}>
        <span className="caret">{open ? '▾' : '▸'}</span>
        <b>{pin}</b>
        <span>{dtypeText(summary.dtype)} {shapeText(summary.shape)}</span>
        {!open && <span>{short(summary.min)} … {short(summary.max)}</span>}
        {summary.nan + summary.inf > 0 && <span className="bad">{summary.nan} NaN, {summary.inf} inf</span>}
      </button>
      {open && run && <ResultView run={run} block={block} pin={pin} summary={summary} {...(marked ? { marked } : {})} onHoverCell={onHoverCell} />}
    </div>
  );
});
