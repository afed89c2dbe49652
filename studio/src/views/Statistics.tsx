// What the summary of a result says, as a table.

import type { Summary } from '../api/types';
import { sizeOf } from './indices';
import { formatCount, formatNumber, formatShape } from './numbers';

export function Statistics({ summary, compact = false }: { summary: Summary; compact?: boolean }) {
  const digits = compact ? 4 : 6;
  // No finite number: there is no minimum to speak of.
  const number = (value: number | null) => (value === null ? '–' : formatNumber(value, digits));
  const rows: [string, string, boolean][] = [
    ['dtype', summary.dtype, false],
    ['shape', formatShape(summary.shape), false],
    ['elements', formatCount(sizeOf(summary.shape)), false],
    ['minimum', number(summary.min), false],
    ['maximum', number(summary.max), false],
    ['mean', number(summary.mean), false],
    ['standard deviation', number(summary.std), false],
    ['NaN', formatCount(summary.nan), summary.nan > 0],
    ['infinite', formatCount(summary.inf), summary.inf > 0],
  ];
  return (
    <table className="v-table v-statistics">
      <tbody>
        {rows.map(([name, value, bad]) => (
          <tr key={name} className={bad ? 'v-bad' : undefined}>
            <th scope="row">{compact && name === 'standard deviation' ? 'std' : name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
