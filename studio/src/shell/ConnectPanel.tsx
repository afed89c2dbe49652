// Connecting pins from the keyboard: the inputs a wire could go to, in a list, with what the server says of each.

import { type KeyboardEvent, useEffect, useMemo, useState } from 'react';
import type { Fits, Source, Target } from '../api/types';
import { tryConnect } from '../canvas/wiring';
import { blockOf } from '../store/page';
import { targetKey, targetsOf } from '../store/rules';
import { fits } from '../store/server';
import { get, set, useStudio } from '../store/state';

const MOST_SHOWN = 40;

function useAnswers(from: Source | null, targets: Target[]): ReadonlyMap<string, Fits> {
  const [answers, setAnswers] = useState<ReadonlyMap<string, Fits>>(new Map());
  useEffect(() => {
    let live = true;
    void (async () => {
      for (const to of targets) {
        if (!live || !from) return;
        const answer = await fits(from, to);
        if (live) setAnswers((before) => new Map(before).set(targetKey(to), answer));
      }
    })();
    return () => {
      live = false;
    };
  }, [from, targets]);
  return answers;
}

export function ConnectPanel() {
  const first = useStudio((state) => state.connectFrom);
  const outputs = useMemo(() => {
    const { page, rows } = get();
    return rows.get(blockOf(page, first?.[0] ?? '')?.type ?? '')?.outputs ?? [];
  }, [first]);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const all = useMemo(() => (first ? targetsOf(get().page, get().rows, first) : []), [first]);
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter((to) => words.every((word) => to.join('.').toLowerCase().includes(word))).slice(0, MOST_SHOWN);
  }, [all, text]);
  const answers = useAnswers(first, shown);
  const choose = (to: Target | undefined) => {
    if (!first || !to) return;
    void tryConnect(first, to).then((done) => done && set({ panel: null }));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt(Math.min(shown.length - 1, at + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (event.key === 'Enter') choose(shown[at]);
    else return;
    event.preventDefault();
  };
  if (!first) return null;
  return (
    <div className="connect" onKeyDown={onKeyDown}>
      <p>From <b>{first[0]}</b>.
        {outputs.length > 1
          ? <select value={first[1]} aria-label="Output" onChange={(event) => set({ connectFrom: [first[0], event.target.value] })}>{outputs.map((pin) => <option key={pin}>{pin}</option>)}</select>
          : first[1]} to</p>
      <input className="search" data-first autoFocus value={text} placeholder="block.pin" aria-label="Search pins" data-testid="connect-search"
        onChange={(event) => { setText(event.target.value); setAt(0); }} />
      <div role="listbox" aria-label="Pins" className="connect-list">
        {shown.map((to, i) => {
          const answer = answers.get(targetKey(to));
          return (
            <button type="button" tabIndex={-1} role="option" aria-selected={i === at} key={targetKey(to)} data-testid={`connect-${to[0]}-${to[1]}`}
              className={`${i === at ? 'active' : ''}${answer?.fits === false ? ' unfit' : ''}`} onClick={() => choose(to)}
              ref={(element) => { if (i === at) element?.scrollIntoView({ block: 'nearest' }); }}>
              <b>{to[0]}</b>.{to[1]}
              {answer?.fits === false && <small>{answer.why}</small>}
            </button>
          );
        })}
        {!shown.length && <p className="quiet">No free input matches.</p>}
      </div>
    </div>
  );
}
