// Two results side by side: by how much they differ, where, and a picture of the difference.

import { useEffect, useMemo, useState, type ReactNode } from 'react';
import type { TensorRef } from '../api/types';
import { AxisControls } from './AxisControls';
import { sliceShowing } from './axes';
import { extremesOf } from './colours';
import { compare, type Comparison, type Difference } from './compare';
import { HeatMap } from './HeatMap';
import { unravel, type Index } from './indices';
import { formatCount, formatIndex, formatNumber, formatShape } from './numbers';
import { useLook } from './useLook';
import { useTensor } from './useTensor';

export interface ComparePanelProps {
  a: TensorRef;
  b: TensorRef;
  onHoverCell?: (index: number[] | null) => void;
}

const nameOf = (ref: TensorRef, other: TensorRef) =>
  ref.run === other.run ? `${ref.block}.${ref.pin}` : `${ref.run} ${ref.block}.${ref.pin}`;

export function ComparePanel(props: ComparePanelProps) {
  const { a, b } = props;
  // Another pair starts anew, so that names never stand over the numbers of the last pair.
  return <Pair key={JSON.stringify([a.block, a.pin, b.block, b.pin])} {...props} />;
}

function Pair({ a, b, onHoverCell }: ComparePanelProps) {
  // Both by their run alone: a comparison is made of results that stand.
  const left = useTensor(a);
  const right = useTensor(b);
  const comparison = useMemo(
    () =>
      left.value && right.value
        ? compare(
            { shape: left.value.shape, data: left.value.values },
            { shape: right.value.shape, data: right.value.values },
          )
        : null,
    [left.value, right.value],
  );
  const problem = left.problem ?? right.problem ?? comparison?.problem;
  const names = { a: nameOf(a, b), b: nameOf(b, a) };
  return (
    <div className="v-result v-compare" data-testid="compare">
      <h4 className="v-title">
        <code>{names.a}</code> against <code>{names.b}</code>
      </h4>
      {problem ? (
        <p className="v-bad" role="alert">
          {problem}
        </p>
      ) : comparison && left.value ? (
        <>
          <Body comparison={comparison} shape={left.value.shape} names={names} hint={a.pin} onHoverCell={onHoverCell} />
          {right.value && comparison.cells <= FEW && (
            <AllCells shape={left.value.shape} a={left.value.values} b={right.value.values} names={names} />
          )}
        </>
      ) : (
        <p className="v-dim">fetching both …</p>
      )}
    </div>
  );
}

/** Results of so few cells are written out, number beside number. */
const FEW = 16;

interface AllCellsProps {
  shape: Index;
  a: ArrayLike<number>;
  b: ArrayLike<number>;
  names: { a: string; b: string };
}

function AllCells({ shape, a, b, names }: AllCellsProps) {
  return (
    <table className="v-table v-numbers" data-testid="compare-cells">
      <thead>
        <tr>
          <th>cell</th>
          <th scope="col">{names.a.split('.')[0]}</th>
          <th scope="col">{names.b.split('.')[0]}</th>
        </tr>
      </thead>
      <tbody>
        {Array.from({ length: a.length }, (_, at) => (
          <tr key={at} className={a[at] === b[at] ? undefined : 'v-differs'}>
            <th scope="row">{formatIndex(unravel(at, shape))}</th>
            <td>{formatNumber(a[at])}</td>
            <td>{formatNumber(b[at])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface BodyProps {
  comparison: Comparison;
  shape: Index;
  names: { a: string; b: string };
  hint: string;
  onHoverCell: ((index: number[] | null) => void) | undefined;
}

function Body({ comparison, shape, names, hint, onHoverCell }: BodyProps) {
  const [look, setLook] = useLook(shape, hint);
  const [shown, setShown] = useState<Index | null>(comparison.absolute?.index ?? null);
  const whole = useMemo(() => extremesOf(comparison.difference), [comparison]);
  const marked = useMemo(() => (shown ? [shown] : []), [shown]);
  useEffect(() => {
    if (shown) setLook((old) => ({ ...old, slice: sliceShowing(old.slice, shown) }));
  }, [shown, setLook]);
  const share = comparison.cells === 0 ? 0 : comparison.differing / comparison.cells;
  const equal = comparison.differing === 0;
  const both = [comparison.absolute, comparison.relative];
  return (
    <>
      <p className={equal ? 'v-verdict' : 'v-verdict v-differs'}>
        {equal
          ? `All ${formatCount(comparison.cells)} cells are equal.`
          : `${formatCount(comparison.differing)} of ${formatCount(comparison.cells)} cells differ (${formatNumber(100 * share, 3)} %).`}
      </p>
      {!equal && (
        <table className="v-table v-numbers">
          <thead>
            <tr>
              <th>largest</th>
              <th scope="col">absolute</th>
              <th scope="col">relative</th>
            </tr>
          </thead>
          <tbody>
            <Row name="difference" of={both} write={(found) => formatNumber(found.value)} />
            <Row
              name="where"
              of={both}
              write={(found) => (
                <button type="button" className="v-link" title="show this cell" onClick={() => setShown(found.index)}>
                  {formatIndex(found.index)}
                </button>
              )}
            />
            <Row name={names.a} of={both} write={(found) => formatNumber(found.a)} />
            <Row name={names.b} of={both} write={(found) => formatNumber(found.b)} />
          </tbody>
        </table>
      )}
      {comparison.strange > 0 && (
        <p className="v-bad">{`${formatCount(comparison.strange)} cells are NaN or infinite on one side only.`}</p>
      )}
      <AxisControls shape={shape} look={look} onChange={setLook} />
      <HeatMap
        shape={shape}
        data={comparison.difference}
        slice={look.slice}
        whole={whole}
        marked={marked}
        label={`${names.a} minus ${names.b}, ${formatShape(shape)}`}
        onHoverCell={onHoverCell}
      />
    </>
  );
}

interface RowProps {
  name: string;
  of: readonly (Difference | null)[];
  write: (found: Difference) => ReactNode;
}

function Row({ name, of, write }: RowProps) {
  return (
    <tr>
      <th scope="row" title={name}>
        {name}
      </th>
      {of.map((found, at) => (
        <td key={at}>{found ? write(found) : '–'}</td>
      ))}
    </tr>
  );
}
