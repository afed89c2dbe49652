// The bar above: pages, edits, runs.

import { type ReactNode, useEffect, useRef, useState } from 'react';
import { fitAll } from '../canvas/flow';
import { alignChosen, distributeChosen, newPage, renamePage, tidy } from '../store/actions';
import { cancelRun, considerRun, startRun } from '../store/server';
import { isDirty, redoStep, set, undoStep, useStudio } from '../store/state';
import { downloadPage, exportPage, pickPage, savePage } from './files';
import { Icon, type IconName } from './Icon';
import { nextTheme } from './theme';

interface ButtonProps {
  icon?: IconName;
  title: string;
  testid: string;
  onClick: () => void;
  disabled?: boolean;
  className?: string;
  children?: ReactNode;
}

function Button({ icon, title, testid, onClick, disabled = false, className = '', children }: ButtonProps) {
  return (
    <button type="button" className={`tool ${className}`} title={title} aria-label={title} data-testid={testid} disabled={disabled} onClick={onClick}>
      {icon && <Icon name={icon} />}{children}
    </button>
  );
}

function Menu({ label, testid, items }: { label: string; testid: string; items: [string, string, () => void][] }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      if (!(event.target instanceof Node && box.current?.contains(event.target))) setOpen(false);
    };
    document.addEventListener('pointerdown', close);
    box.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    return () => document.removeEventListener('pointerdown', close);
  }, [open]);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const rows = [...(box.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Escape') setOpen(false);
    else if (event.key === 'ArrowDown') rows[(at + 1) % rows.length]?.focus();
    else if (event.key === 'ArrowUp') rows.at(at - 1)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="menu" ref={box} onKeyDown={onKeyDown}>
      <button type="button" className="tool" aria-haspopup="menu" aria-expanded={open} data-testid={testid} onClick={() => setOpen(!open)}>{label} <span className="caret">▾</span></button>
      {open && (
        <div className="menu-list" role="menu">
          {items.map(([title, id, run]) => (
            <button type="button" role="menuitem" key={id} data-testid={id} onClick={() => { setOpen(false); run(); }}>{title}</button>
          ))}
        </div>
      )}
    </div>
  );
}

function PageName() {
  const name = useStudio((state) => state.page.name);
  const dirty = useStudio(isDirty);
  useEffect(() => {
    document.title = `${dirty ? '• ' : ''}${name} – convgrad studio`;
  }, [name, dirty]);
  return (
    <span className="page-name">
      <input value={name} aria-label="Name of the page" data-testid="page-name" spellCheck={false} onChange={(event) => renamePage(event.target.value)} />
      <span className={dirty ? 'dot dirty' : 'dot'} data-testid="dirty" title={dirty ? 'Unsaved changes (kept in this browser)' : 'Saved'} />
    </span>
  );
}

function RunTools() {
  const running = useStudio((state) => state.run?.state === 'running');
  const online = useStudio((state) => state.online);
  const autoRun = useStudio((state) => state.autoRun);
  const steps = useStudio((state) => state.steps);
  const until = useStudio((state) => (state.blocks.size === 1 ? [...state.blocks][0] : undefined));
  return (
    <div className="tools">
      <label className="tool-field" title="How often a run steps the page">steps
        <input type="number" min={1} value={steps} data-testid="steps" onChange={(event) => set({ steps: Math.max(1, Math.floor(Number(event.target.value)) || 1) })} />
      </label>
      <label className="tool-field" title="Run after every edit">
        <input type="checkbox" checked={autoRun} data-testid="auto-run" onChange={(event) => { set({ autoRun: event.target.checked }); considerRun(); }} />auto
      </label>
      {until !== undefined && <Button title={`Run up to ${until} (Ctrl+Shift+Enter)`} testid="run-until" disabled={!online} onClick={() => void startRun(until)}>Run to block</Button>}
      {running
        ? <Button icon="stop" title="Cancel (Ctrl+.)" testid="cancel" className="danger" onClick={cancelRun}>Cancel</Button>
        : <Button icon="play" title="Run (Ctrl+Enter)" testid="run" className="primary" disabled={!online} onClick={() => void startRun()}>Run</Button>}
    </div>
  );
}

export function Toolbar() {
  const past = useStudio((state) => state.history.past.length > 0);
  const future = useStudio((state) => state.history.future.length > 0);
  const several = useStudio((state) => state.blocks.size > 1);
  const theme = useStudio((state) => state.theme);
  return (
    <header className="toolbar">
      <span className="brand"><Icon name="logo" />convgrad</span>
      <div className="tools">
        <Button icon="new" title="New page (Alt+N)" testid="new" onClick={newPage} />
        <Button icon="open" title="Open a file (Ctrl+O)" testid="open" onClick={pickPage} />
        <Button icon="save" title="Save (Ctrl+S)" testid="save" onClick={() => void savePage()} />
        <Button icon="download" title="Download the page" testid="download" onClick={downloadPage} />
      </div>
      <div className="tools">
        <Button icon="undo" title="Undo (Ctrl+Z)" testid="undo" disabled={!past} onClick={undoStep} />
        <Button icon="redo" title="Redo (Ctrl+Shift+Z)" testid="redo" disabled={!future} onClick={redoStep} />
      </div>
      <div className="tools">
        <Button title="Gallery (G)" testid="menu-gallery" onClick={() => set({ panel: 'gallery' })}>Gallery</Button>
        <Menu label="Export" testid="menu-export" items={[
          ['Python', 'export-python', () => void exportPage('python')],
          ['C++', 'export-cpp', () => void exportPage('cpp')],
          ['Picture (SVG)', 'export-svg', () => void exportPage('svg')],
        ]} />
        <Button title="Lay the page out anew (L)" testid="tidy" onClick={() => { tidy(); setTimeout(fitAll, 50); }}>Tidy</Button>
        {several && <Menu label="Arrange" testid="menu-arrange" items={[
          ['Align left', 'align-left', () => alignChosen('left')],
          ['Align centre', 'align-centre', () => alignChosen('centre')],
          ['Align right', 'align-right', () => alignChosen('right')],
          ['Align top', 'align-top', () => alignChosen('top')],
          ['Align middle', 'align-middle', () => alignChosen('middle')],
          ['Align bottom', 'align-bottom', () => alignChosen('bottom')],
          ['Distribute across', 'distribute-across', () => distributeChosen('across')],
          ['Distribute down', 'distribute-down', () => distributeChosen('down')],
        ]} />}
      </div>
      <PageName />
      <RunTools />
      <div className="tools">
        <Button icon={theme === 'system' ? 'auto' : theme === 'dark' ? 'moon' : 'sun'} title={`Theme: ${theme} (T)`} testid="theme" onClick={nextTheme} />
        <Button title="Keys (?)" testid="help" onClick={() => set({ panel: 'help' })}>?</Button>
      </div>
    </header>
  );
}
