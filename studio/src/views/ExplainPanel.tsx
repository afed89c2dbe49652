// What the library says of a convolution: which algorithm, why not the others, how near the roofline.

import { api } from '../api/client';
import type { Page } from '../api/types';
import { candidatesOf, factsOf } from './explained';
import { formatSeconds } from './numbers';
import { useAnswer } from './useTensor';

export interface ExplainPanelProps {
  page: Page;
  block: string;
}

export function ExplainPanel({ page, block }: ExplainPanelProps) {
  // Moving a block asks nothing anew: only types, pins and wires decide.
  const key = JSON.stringify([block, page.blocks.map(({ id, type, pins }) => [id, type, pins]), page.wires]);
  const { value, problem, waiting } = useAnswer(key, () => api.explain(page, block), true);
  if (problem) {
    return (
      <p className="v-bad" role="alert">
        {problem}
      </p>
    );
  }
  if (!value) return <p className="v-dim">asking about {block} …</p>;
  const candidates = candidatesOf(value.document);
  return (
    <div className={waiting ? 'v-explain v-waiting' : 'v-explain'} data-testid="explain">
      <table className="v-table v-facts">
        <tbody>
          {factsOf(value.document).map(([name, text]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {candidates.length > 0 && (
        <details>
          <summary>{`${candidates.length} algorithms considered`}</summary>
          <table className="v-table">
            <tbody>
              {candidates.map((row) => (
                <tr key={row.name} className={row.chosen ? 'v-now' : undefined}>
                  <th scope="row">{row.name}</th>
                  <td className="v-left">
                    {row.predicted === null ? (row.reason ?? '') : formatSeconds(row.predicted * 1e-6)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
      <pre className="v-text">{value.text}</pre>
    </div>
  );
}
