// How one cell of a result came about: its formula, its terms, and a stepper that walks the sum.

import { useEffect, useMemo, useState } from 'react';
import { api } from '../api/client';
import type { Trace } from '../api/types';
import { marksOfTrace, type Mark } from './marks';
import { formatCount, formatIndex, formatNumber } from './numbers';
import { Stepper } from './Stepper';
import { combineOf, runningValues } from './sums';
import { TermTable } from './TermTable';
import { useAnswer } from './useTensor';

export interface TracePanelProps {
  run: string;
  block: string;
  pin: string;
  index: readonly number[];
  /** Cells to outline elsewhere, on every step; empty when the panel goes. */
  onMark?: (marks: Mark[]) => void;
}

/** A mouse crosses many cells on its way; only those it rests on are asked for. */
const REST = 40;

function askTrace(
  run: string,
  block: string,
  pin: string,
  index: readonly number[],
  signal: AbortSignal,
): Promise<Trace> {
  return new Promise((resolve, reject) => {
    const wait = setTimeout(() => {
      api.trace(run, block, pin, [...index], signal).then(resolve, reject);
    }, REST);
    signal.addEventListener('abort', () => clearTimeout(wait));
  });
}

export function TracePanel({ run, block, pin, index, onMark }: TracePanelProps) {
  const key = JSON.stringify([run, block, pin, index]);
  const answer = useAnswer(
    key,
    (signal) => askTrace(run, block, pin, index, signal).then((trace) => ({ trace, key })),
    true,
  );
  if (answer.problem) {
    return (
      <p className="v-trace v-bad" role="alert">
        {answer.problem}
      </p>
    );
  }
  if (!answer.value) return <p className="v-trace v-dim">tracing {formatIndex(index)} …</p>;
  const [, from, out, at] = JSON.parse(answer.value.key) as [string, string, string, number[]];
  return (
    <div className={answer.waiting ? 'v-trace v-waiting' : 'v-trace'} data-testid="trace">
      {/* A new cell starts from the beginning: the key drops the old step. */}
      <TraceBody key={answer.value.key} trace={answer.value.trace} block={from} pin={out} index={at} onMark={onMark} />
    </div>
  );
}

interface BodyProps {
  trace: Trace;
  block: string;
  pin: string;
  index: readonly number[];
  onMark: ((marks: Mark[]) => void) | undefined;
}

function TraceBody({ trace, block, pin, index, onMark }: BodyProps) {
  const [step, setStep] = useState<number | null>(null);
  const { terms } = trace;
  const combine = useMemo(() => combineOf(terms, trace.sum, trace.value), [terms, trace]);
  const running = useMemo(() => runningValues(terms, combine), [terms, combine]);
  const place = index.join();
  useEffect(() => {
    onMark?.(marksOfTrace(block, pin, place === '' ? [] : place.split(',').map(Number), terms, step));
  }, [onMark, block, pin, place, terms, step]);
  useEffect(() => () => onMark?.([]), [onMark]);

  const difference = trace.sum === null || trace.value === null ? null : trace.value - trace.sum;
  return (
    <>
      <h4 className="v-title">
        <code>{`${block}.${pin}${formatIndex(index)}`}</code> = <b>{formatNumber(trace.value)}</b>
      </h4>
      <pre className="v-formula">{trace.formula}</pre>
      {terms.length > 0 && (
        <>
          <Stepper count={terms.length} step={step} onStep={setStep} />
          <TermTable terms={terms} running={running} runningName={`running ${combine}`} step={step} onStep={setStep} />
        </>
      )}
      {trace.shown < trace.total && (
        <p className="v-dim">{`The first ${formatCount(trace.shown)} of ${formatCount(trace.total)} terms.`}</p>
      )}
      {combine === 'sum' && (
        <table className="v-table v-totals">
          <tbody>
            <tr>
              <th scope="row">{trace.shown < trace.total ? 'sum of all terms' : 'sum of the terms'}</th>
              <td>{formatNumber(trace.sum, 9)}</td>
            </tr>
            <tr>
              <th scope="row">value of the block</th>
              <td>{formatNumber(trace.value, 9)}</td>
            </tr>
            <tr>
              <th scope="row">difference</th>
              <td>{difference === null ? '–' : formatNumber(difference, 3)}</td>
            </tr>
          </tbody>
        </table>
      )}
    </>
  );
}
