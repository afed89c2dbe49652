// What the library says of a convolution: which algorithm, why not the others, how near the roofline.

import { useEffect, useState } from 'react';
import { api } from '../api/client';
import type { Explanation, Page } from '../api/types';
import { candidatesOf, factsOf } from './explained';
import { formatSeconds } from './numbers';
import { useAnswer } from './useTensor';

export interface ExplainPanelProps {
  page: Page;
  block: string;
}

const known = new Map<string, Promise<Explanation>>();
const MOST_KNOWN = 64;

/** An explanation is the same as long as the block is; failures are asked for again. */
function explained(key: string, page: Page, block: string): Promise<Explanation> {
  const found = known.get(key);
  if (found) return found;
  const asked = api.explain(page, block);
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  const oldest = known.keys().next();
  if (known.size > MOST_KNOWN && !oldest.done) known.delete(oldest.value);
  return asked;
}

/** Longer than an answer takes that has nothing to measure. */
const SOON_MS = 400;

function Waiting({ block }: { block: string }) {
  const [long, setLong] = useState(false);
  useEffect(() => {
    const wait = setTimeout(() => setLong(true), SOON_MS);
    return () => clearTimeout(wait);
  }, []);
  return (
    <p className="v-dim" role="status">
      {long ? 'measuring how fast this machine is, once; a few seconds …' : `asking about ${block} …`}
    </p>
  );
}

export function ExplainPanel({ page, block }: ExplainPanelProps) {
  // Moving a block asks nothing anew: only types, pins and wires decide.
  const key = JSON.stringify([block, page.blocks.map(({ id, type, pins }) => [id, type, pins]), page.wires]);
  const { value, problem, waiting } = useAnswer(key, () => explained(key, page, block), true);
  if (problem) {
    return (
      <p className="v-bad" role="alert">
        {problem}
      </p>
    );
  }
  if (!value) return <Waiting block={block} />;
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
