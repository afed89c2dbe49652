// The line below: what is on the page, what is wrong with it, how the run goes.

import { showBlock } from '../canvas/flow';
import { timeText } from '../format';
import { sameMeaning } from '../store/page';
import { select, set, useStudio } from '../store/state';

function RunWords() {
  const run = useStudio((state) => state.run);
  const stale = useStudio((state) => state.ranPage !== null && !sameMeaning(state.ranPage, state.page));
  if (!run) return null;
  const part = run.total ? ` ${run.done}/${run.total} blocks` : '';
  const step = run.steps > 1 ? ` step ${run.step}/${run.steps}` : '';
  const share = run.steps > 1 ? run.step / run.steps : run.total ? run.done / run.total : 0;
  return (
    <span data-testid="run-state" className={`run-${run.state}`}>
      {stale && run.state !== 'running' ? 'results of the page before the last edits: ' : ''}{run.state}{step}{part}{run.state === 'running' && run.block ? ` · ${run.block}` : ''}
      {run.state === 'running' && <progress max={1} value={share} />}
    </span>
  );
}

export function StatusLine() {
  const blocks = useStudio((state) => state.page.blocks.length);
  const wires = useStudio((state) => state.page.wires?.length ?? 0);
  const chosen = useStudio((state) => state.blocks.size);
  const checks = useStudio((state) => state.checks);
  const ms = useStudio((state) => state.checkMs);
  const online = useStudio((state) => state.online);
  const file = useStudio((state) => state.file);
  const notes = useStudio((state) => state.pageNotes);
  const version = useStudio((state) => state.version);
  const bad = [...checks.keys()].filter((id) => checks.get(id)?.problem);
  const next = () => {
    const id = bad[0];
    if (id === undefined) return;
    select([id]);
    showBlock(id);
  };
  return (
    <footer className="status" data-testid="status" role="status">
      {!online && <span className="offline">The server does not answer. Your work is kept here; waiting for it…</span>}
      <span>{blocks} blocks, {wires} wires{chosen ? `, ${chosen} chosen` : ''}</span>
      {bad.length > 0
        ? <button type="button" className="bad" onClick={next} title="Show the first">{bad.length} {bad.length === 1 ? 'problem' : 'problems'}</button>
        : <span className="good">no problems</span>}
      {ms !== null && <span>checked in {timeText(ms)}</span>}
      <RunWords />
      {notes.length > 0 && <span className="note" title={notes.join('\n')}>{notes[0]}</span>}
      <span className="grow" />
      <span>{file ?? 'no file'}</span>
      <button type="button" className="link" data-testid="about" title="About, and licences" onClick={() => set({ panel: 'about' })}>convgrad {version}</button>
    </footer>
  );
}
