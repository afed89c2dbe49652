// What is chosen, in full: form, words of the server, wires, explanation, comparison.

import { useMemo } from 'react';
import type { Block, TensorRef } from '../api/types';
import { specText } from '../format';
import { tensorPin } from '../shell/files';
import { madeFrom } from '../store/partial';
import { blockOf, remove, setIndex, wireIds, wiresOf } from '../store/page';
import { edit, select, set, useStudio } from '../store/state';
import { ComparePanel, ExplainPanel, type Mark, TracePanel } from '../views';
import { BlockForm } from './BlockForm';
import { Drawing } from './Drawing';

function Wires({ block }: { block: Block }) {
  const page = useStudio((state) => state.page);
  const names = wireIds(page);
  const touching = wiresOf(page).map((wire, i) => ({ wire, id: names[i] ?? '' })).filter(({ wire }) => wire.from[0] === block.id || wire.to[0] === block.id);
  if (!touching.length) return null;
  return (
    <section>
      <h3>Wires</h3>
      {touching.map(({ wire, id }) => (
        <div className="wire-row" key={id}>
          <button type="button" className="link" onClick={() => select([], [id])}>{wire.from.join('.')} → {wire.to.join('.')}</button>
          <button type="button" className="close" aria-label={`Delete the wire from ${wire.from.join('.')} to ${wire.to.join('.')}`} onClick={() => edit((now) => remove(now, new Set(), new Set([id])))}>×</button>
        </div>
      ))}
    </section>
  );
}

function Explained({ id }: { id: string }) {
  const page = useStudio((state) => state.page);
  const online = useStudio((state) => state.online);
  const part = useMemo(() => madeFrom(page, id), [page, id]);
  // Whoever comes back is asked again.
  return <ExplainPanel key={String(online)} page={part} block={id} />;
}

const onMark = (marks: Mark[]) => set({ highlight: marks });

/** How the cell under the mouse, or the one clicked, came to be. */
function Traced() {
  const cell = useStudio((state) => state.hovered ?? state.picked);
  const picked = useStudio((state) => state.picked !== null);
  const run = useStudio((state) => state.resultsRun);
  if (!cell || !run) return null;
  return (
    <section className={picked ? 'traced kept' : 'traced'}>
      <h3>Cell [{cell.index.join(', ')}] of {cell.block}.{cell.pin}
        {picked && <button type="button" className="close" aria-label="Close the trace" onClick={() => set({ picked: null, highlight: [] })}>×</button>}
      </h3>
      <TracePanel run={run} block={cell.block} pin={cell.pin} index={cell.index} onMark={onMark} />
      {!picked && <p className="quiet">Click the cell to keep it and step through its sum.</p>}
    </section>
  );
}

function OneBlock({ id }: { id: string }) {
  const block = useStudio((state) => blockOf(state.page, id));
  const row = useStudio((state) => (block ? state.rows.get(block.type) : undefined));
  const check = useStudio((state) => state.checks.get(id));
  if (!block) return null;
  const pin = tensorPin(row);
  return (
    <>
      <h2>{block.id} <small>{block.type}</small></h2>
      {row && <p className="quiet">{row.summary}</p>}
      {check?.problem && <p className="problem">{check.problem}</p>}
      <BlockForm block={block} row={row} />
      {pin !== null && <Drawing block={block} pin={pin} />}
      {check && check.tensors.size > 0 && (
        <section>
          <h3>Tensors</h3>
          {[...check.tensors].map(([name, spec]) => <div className="form-row" key={name}><span>{name}</span><code>{specText(spec)}</code></div>)}
        </section>
      )}
      <Wires block={block} />
      {row?.group.toLowerCase().includes('convolution') && !check?.problem && <section><h3>Explain</h3><Explained id={id} /></section>}
    </>
  );
}

/** Two blocks chosen that both have results: the first result of each, side by side. */
function Several({ ids }: { ids: string[] }) {
  const results = useStudio((state) => state.results);
  const run = useStudio((state) => state.resultsRun);
  const refs = ids.slice(0, 2).flatMap((block): TensorRef[] => {
    const pin = results.get(block)?.keys().next().value;
    return run && pin !== undefined ? [{ run, block, pin }] : [];
  });
  const [a, b] = refs;
  return (
    <>
      <h2>{ids.length} blocks</h2>
      {ids.length === 2 && a && b
        ? <section><h3>Compare {a.block} with {b.block}</h3><ComparePanel a={a} b={b} /></section>
        : <p className="quiet">Choose two blocks that have results to compare them.</p>}
    </>
  );
}

function OneWire({ id }: { id: string }) {
  const page = useStudio((state) => state.page);
  const wire = wiresOf(page)[wireIds(page).indexOf(id)];
  if (!wire) return null;
  const index = wire.from[2];
  const change = (text: string) => {
    const next = text.trim() === '' ? null : Math.max(0, Math.floor(Number(text)) || 0);
    edit((now) => setIndex(now, id, next), `index:${wire.to.join()}`);
    select([], [JSON.stringify([next === null ? [wire.from[0], wire.from[1]] : [wire.from[0], wire.from[1], next], wire.to])]);
  };
  return (
    <>
      <h2>Wire</h2>
      <p>{wire.from[0]}.{wire.from[1]} → {wire.to.join('.')}</p>
      <label className="form-row"><span title="Which item of a list of outputs">item</span><input className="field" type="number" min={0} value={index ?? ''} placeholder="all" data-testid="wire-index" onChange={(event) => change(event.target.value)} /></label>
    </>
  );
}

export function Inspector() {
  const blocks = useStudio((state) => state.blocks);
  const wires = useStudio((state) => state.wires);
  const ids = [...blocks];
  const [id] = ids;
  const [wire] = wires;
  return (
    <aside className="inspector" aria-label="Inspector" data-testid="inspector">
      <Traced />
      {ids.length === 1 && id !== undefined ? <OneBlock key={id} id={id} />
        : ids.length > 1 ? <Several ids={ids} />
        : wire !== undefined ? <OneWire id={wire} />
        : <p className="quiet">Choose a block to see its settings here. Two blocks with results are compared.</p>}
    </aside>
  );
}
