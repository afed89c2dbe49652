// The terms of a traced cell: cell and value of each input, product, running result.

import { useEffect, useRef } from 'react';
import type { TracePart, TraceTerm } from '../api/types';
import { pinsOf } from './marks';
import { formatNumber } from './numbers';
import { worthShowing } from './sums';
import { numbersIn, useWindow } from './useWindow';

interface Props {
  terms: readonly TraceTerm[];
  running: readonly number[];
  runningName: string;
  step: number | null;
  onStep: (step: number) => void;
}

const ROW = 22;
const HEIGHT = 250;

/** A filter's first two places are its tap; other inputs are cells. */
function placeName(pin: string): string {
  return /filter/.test(pin) ? 'tap' : 'cell';
}

export function TermTable({ terms, running, runningName, step, onStep }: Props) {
  const view = useRef<HTMLDivElement>(null);
  const pins = pinsOf(terms);
  const { rows, onScroll } = useWindow(terms.length, 1, ROW, 1, HEIGHT, 1);
  const head = 2 * ROW;
  useEffect(() => {
    const box = view.current;
    if (!box || step === null) return;
    // Keep the row of this step in sight, below the header.
    box.scrollTop = Math.min(Math.max(box.scrollTop, head + (step + 1) * ROW - box.clientHeight), step * ROW);
  }, [step, head]);
  const products = worthShowing(terms);
  const runs = running.length > 0;
  const columns = 1 + pins.length * 2 + Number(products) + Number(runs);
  return (
    <div ref={view} className="v-terms nowheel" style={{ maxHeight: HEIGHT }} onScroll={onScroll}>
      <table className="v-table">
        <thead>
          <tr>
            <th rowSpan={2}>#</th>
            {pins.map((pin) => (
              <th key={pin} colSpan={2} className="v-pin">
                {pin}
              </th>
            ))}
            {products && <th rowSpan={2}>{terms.some((term) => term.parts.length > 1) ? 'product' : 'term'}</th>}
            {runs && <th rowSpan={2}>{runningName}</th>}
          </tr>
          <tr>
            {pins.flatMap((pin) => [
              <th key={`${pin} place`}>{placeName(pin)}</th>,
              <th key={`${pin} value`}>value</th>,
            ])}
          </tr>
        </thead>
        <tbody>
          <Spacer columns={columns} height={rows.start * ROW} />
          {numbersIn(rows).map((at) => {
            const term = terms[at];
            if (!term) return null;
            const padding = term.padding || term.parts.some((part) => part.padding);
            const done = step !== null && at > step;
            const classes = [padding && 'v-padding', at === step && 'v-now', done && 'v-later'];
            return (
              <tr
                key={at}
                className={classes.filter(Boolean).join(' ')}
                aria-current={at === step ? 'step' : undefined}
                onClick={() => onStep(at)}
              >
                <td className="v-dim">{at}</td>
                {pins.map((pin) => (
                  <Part key={pin} part={term.parts.find((one) => one.pin === pin)} padding={padding} />
                ))}
                {products && <td>{formatNumber(term.product)}</td>}
                {runs && <td className="v-running">{done ? '' : formatNumber(running[at])}</td>}
              </tr>
            );
          })}
          <Spacer columns={columns} height={(terms.length - rows.end) * ROW} />
        </tbody>
      </table>
    </div>
  );
}

function Part({ part, padding }: { part: TracePart | undefined; padding: boolean }) {
  if (!part) {
    return (
      <>
        <td />
        <td />
      </>
    );
  }
  const outside = part.padding || (padding && part.index.some((at) => at < 0));
  return (
    <>
      <td className="v-place" title={part.block ? `${part.block}.${part.source_pin}` : 'typed on the pin'}>
        {outside ? 'padding' : part.index.join(',')}
      </td>
      <td>{formatNumber(part.value)}</td>
    </>
  );
}

/** Room of the rows that are not in the document. */
function Spacer({ columns, height }: { columns: number; height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}
