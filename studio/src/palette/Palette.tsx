// All blocks there are: search, click or Enter to add, drag to place.

import { type CSSProperties, type KeyboardEvent, memo, useMemo, useRef, useState } from 'react';
import type { PaletteRow } from '../api/types';
import { DRAGGED } from '../canvas/Canvas';
import { freePlace } from '../canvas/flow';
import { addFromPalette } from '../store/actions';
import { get, useStudio } from '../store/state';
import { found, grouped } from './search';

export function addHere(row: PaletteRow): void {
  const id = addFromPalette(row, freePlace(get().page.blocks.map((block) => block.at ?? [0, 0])));
  setTimeout(() => document.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`)?.focus(), 60);
}

const Row = memo(function Row({ row, active }: { row: PaletteRow; active: boolean }) {
  const hue = useStudio((state) => state.hues.get(row.group) ?? 0);
  return (
    <button
      type="button" className={active ? 'palette-row active' : 'palette-row'} draggable tabIndex={-1} title={row.summary}
      style={{ '--hue': hue } as CSSProperties} data-testid={`palette-${row.type}`} role="option" aria-selected={active}
      onClick={() => addHere(row)}
      onDragStart={(event) => event.dataTransfer.setData(DRAGGED, row.type)}
      ref={(element) => { if (active) element?.scrollIntoView({ block: 'nearest' }); }}
    >
      <span className="swatch" /><span className="name">{row.type}</span>
    </button>
  );
});

const STEPS = new Map([['ArrowDown', 1], ['ArrowUp', -1], ['PageDown', 10], ['PageUp', -10]]);

export function Palette() {
  const rows = useStudio((state) => state.rows);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const groups = useMemo(() => {
    const matching = found(rows.values(), text);
    return text.trim() ? ([['found', matching]] as [string, PaletteRow[]][]) : grouped(matching);
  }, [rows, text]);
  const flat = useMemo(() => groups.flatMap(([, list]) => list), [groups]);
  const [walking, setWalking] = useState(false);

  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS.get(event.key);
    if (step !== undefined) {
      setAt(walking || text ? Math.max(0, Math.min(flat.length - 1, at + step)) : 0);
      setWalking(true);
    } else if (event.key === 'Enter') {
      const row = flat[at];
      if (row && (text || walking)) addHere(row);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const active = text || walking ? flat[at] : undefined;
  return (
    <nav className="palette" aria-label="Palette">
      <input
        ref={input} type="search" className="search" placeholder="Search blocks  ( / )" value={text} data-testid="palette-search"
        aria-label="Search blocks" spellCheck={false} onKeyDown={onKeyDown} onBlur={() => setWalking(false)}
        onChange={(event) => { setText(event.target.value); setAt(0); }}
      />
      <div className="palette-list" role="listbox" aria-label="Blocks">
        {groups.map(([group, list]) => (
          <section key={group}>
            <h2>{group}</h2>
            {list.map((row) => <Row key={row.type} row={row} active={row === active} />)}
          </section>
        ))}
        {!flat.length && <p className="quiet">{rows.size ? `No block matches “${text}”.` : 'Waiting for the server…'}</p>}
      </div>
    </nav>
  );
}
