// One block, drawn from its row of the palette. It listens to its own part of the store and to nothing else.

import type { NodeProps } from '@xyflow/react';
import { type CSSProperties, Fragment, type KeyboardEvent, memo, useMemo } from 'react';
import type { Block, PaletteRow } from '../api/types';
import { specText, timeText } from '../format';
import { renameBlock } from '../store/actions';
import { blockOf, pinOf, wiredInto, wiredOutOf } from '../store/page';
import { pinsOf } from '../store/rules';
import { set } from '../store/state';
import { useBlock } from '../store/watch';
import { LossPlot } from '../views';
import { Field } from './Field';
import type { BlockItem } from './items';
import { Pin } from './Pin';
import { Result } from './Result';

/** A long name may be broken before its words. */
const breakable = (name: string) => name.split(/(?=[A-Z][a-z])/).map((word, i) => <Fragment key={i}>{i > 0 && <wbr />}{word}</Fragment>);

function Title({ block, row }: { block: Block; row: PaletteRow | undefined }) {
  const renaming = useBlock(block.id, (state) => state.renaming === block.id);
  const ms = useBlock(block.id, (state) => state.times.get(block.id));
  const finish = (text: string) => {
    if (text === block.id || !renameBlock(block.id, text)) set({ renaming: null });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') finish(event.currentTarget.value);
    if (event.key === 'Escape') set({ renaming: null });
    event.stopPropagation();
  };
  return (
    <header className="block-title" onDoubleClick={() => set({ renaming: block.id })} title={row?.summary ?? `No block is called ${block.type}`}>
      <span className="block-type">{breakable(block.type)}</span>
      {ms !== undefined && <span className="block-time">{timeText(ms)}</span>}
      {renaming ? (
        <input className="field nodrag" autoFocus defaultValue={block.id} data-testid={`rename-${block.id}`} aria-label={`new id of ${block.id}`}
          onFocus={(event) => event.currentTarget.select()} onBlur={(event) => finish(event.currentTarget.value)} onKeyDown={onKeyDown} />
      ) : (
        <span className="block-id">{block.id}</span>
      )}
    </header>
  );
}

/** What the server said of a block. */
function Words({ id }: { id: string }) {
  const check = useBlock(id, (state) => state.checks.get(id));
  if (!check) return null;
  return (
    <>
      {check.problem && <p className="problem" role="alert" data-testid={`problem-${id}`}>{check.problem}</p>}
      {check.notes.map((note) => <p className="note" key={note}>{note}</p>)}
    </>
  );
}

function Outcome({ id }: { id: string }) {
  const results = useBlock(id, (state) => state.results.get(id));
  const curve = useBlock(id, (state) => state.curves.get(id));
  return (
    <>
      {curve && curve.length > 0 && <div className="curve nodrag" data-testid={`curve-${id}`}><LossPlot values={curve} /></div>}
      {results && [...results].map(([pin, summary]) => <Result key={pin} block={id} pin={pin} summary={summary} />)}
    </>
  );
}

function Outputs({ id, names, wired }: { id: string; names: string[]; wired: readonly string[] }) {
  const tensors = useBlock(id, (state) => state.checks.get(id)?.tensors);
  return names.map((name) => {
    const spec = tensors?.get(name);
    const items = [...(tensors?.keys() ?? [])].filter((key) => key.startsWith(`${name}[`)).length;
    return (
      <div className="row row-out" key={name}>
        <span className="spec" data-testid={`spec-${id}-${name}`}>{spec ? specText(spec) : items ? `${items} tensors` : ''}</span>
        <span className="pin-name">{name}</span>
        <Pin id={id} name={name} side="out" wired={wired.includes(name)} />
      </div>
    );
  });
}

const Body = memo(function Body({ block, row }: { block: Block; row: PaletteRow | undefined }) {
  const into = useBlock(block.id, (state) => wiredInto(state.page, block.id).join('\n'));
  const out = useBlock(block.id, (state) => wiredOutOf(state.page, block.id).join('\n'));
  const [wiredIn, wiredOut] = useMemo(() => [into.split('\n').filter(Boolean), out.split('\n').filter(Boolean)], [into, out]);
  const pins = useMemo(() => pinsOf(block, row, wiredIn, wiredOut), [block, row, wiredIn, wiredOut]);
  const settings = new Map(row?.settings.map((setting) => [setting.name, setting]));
  return (
    <>
      {pins.inputs.map(({ name, list, literal }) => {
        const wired = wiredIn.includes(name);
        const value = pinOf(block, name);
        const typed = value !== undefined && value !== '';
        return (
          <div className="row row-in" key={name}>
            <Pin id={block.id} name={name} side="in" wired={wired} />
            <span className="pin-name">{name}{list ? ' …' : ''}</span>
            {(typed || (literal && !wired)) && <Field id={block.id} pin={name} value={value} testid={`field-${block.id}-${name}`} hint={wired ? '' : 'wire or text'} />}
          </div>
        );
      })}
      {pins.settings.map((name) => (
        <label className="row row-set" key={name}>
          {wiredIn.includes(name) && <Pin id={block.id} name={name} side="in" wired />}
          <span className="pin-name">{name}</span>
          <Field id={block.id} pin={name} value={pinOf(block, name)} testid={`field-${block.id}-${name}`} hint={settings.get(name)?.default ?? ''} />
        </label>
      ))}
      <Outputs id={block.id} names={pins.outputs} wired={wiredOut} />
    </>
  );
});

export const BlockNode = memo(function BlockNode({ id, selected }: NodeProps<BlockItem>) {
  const block = useBlock(id, (state) => blockOf(state.page, id));
  const row = useBlock(id, (state) => (block ? state.rows.get(block.type) : undefined));
  const hue = useBlock(id, (state) => state.hues.get(row?.group ?? '') ?? 0);
  const bad = useBlock(id, (state) => Boolean(state.checks.get(id)?.problem));
  const busy = useBlock(id, (state) => state.run?.state === 'running' && state.run.block === id);
  if (!block) return null;
  const style = { '--hue': hue } as CSSProperties;
  return (
    <article className={`block${selected ? ' chosen' : ''}${bad ? ' bad' : ''}${busy ? ' busy' : ''}${row ? '' : ' unknown'}`} style={style} data-testid={`block-${id}`}>
      <Title block={block} row={row} />
      <Body block={block} row={row} />
      <Words id={id} />
      <Outcome id={id} />
    </article>
  );
});
