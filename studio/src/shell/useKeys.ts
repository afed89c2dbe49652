// Runs the commands of the keyboard, and copies and pastes through the system's clipboard.

import { useEffect } from 'react';
import type { Source } from '../api/types';
import { fitAll, zoomIn, zoomOut, zoomReset } from '../canvas/flow';
import { type Command, commandOf } from '../keys';
import {
  alignChosen, copyText, deleteChosen, distributeChosen, duplicate, firstOutput, newPage, nudge, pasteText, selectAll, tidy,
} from '../store/actions';
import { cancelRun, startRun } from '../store/server';
import { get, notify, redoStep, select, set, undoStep } from '../store/state';
import { pickPage, savePage } from './files';
import { nextTheme } from './theme';

const chosen = (): string | null => [...get().blocks][0] ?? null;

/** The output a wire starts at: the pin that has the focus, else the first of the block chosen. */
function startConnect(): void {
  const focused = document.activeElement?.getAttribute('data-pin');
  let from: Source | null = null;
  if (focused) {
    const [id, pin, side] = JSON.parse(focused) as [string, string, string];
    if (side === 'out') from = [id, pin];
  } else from = firstOutput();
  if (from) set({ connectFrom: from, panel: 'connect' });
  else notify('info', 'Choose a block or an output first, then press c.');
}

function escape(): void {
  const { panel } = get();
  if (panel) set({ panel: null });
  else if (document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLTextAreaElement) {
    const node = document.activeElement.closest<HTMLElement>('.react-flow__node');
    document.activeElement.blur();
    node?.focus();
  } else select([]);
}

const COMMANDS: Record<Command, () => void> = {
  undo: undoStep, redo: redoStep, selectAll, delete: deleteChosen, duplicate, save: () => void savePage(), open: pickPage,
  new: newPage, run: () => void startRun(), runUntil: () => void startRun(chosen()), cancel: cancelRun,
  search: () => document.querySelector<HTMLInputElement>('[data-testid="palette-search"]')?.select(),
  connect: startConnect, rename: () => set({ renaming: chosen() }), fit: fitAll, zoomIn, zoomOut, zoomReset,
  help: () => set({ panel: 'help' }), escape, gallery: () => set({ panel: 'gallery' }), theme: nextTheme, tidy,
  left: () => nudge(-8, 0), right: () => nudge(8, 0), up: () => nudge(0, -8), down: () => nudge(0, 8),
  farLeft: () => nudge(-64, 0), farRight: () => nudge(64, 0), farUp: () => nudge(0, -64), farDown: () => nudge(0, 64),
  alignLeft: () => alignChosen('left'), alignRight: () => alignChosen('right'),
  alignTop: () => alignChosen('top'), alignBottom: () => alignChosen('bottom'),
  distributeAcross: () => distributeChosen('across'), distributeDown: () => distributeChosen('down'),
  inspect: () => document.querySelector<HTMLElement>('.inspector input, .inspector select')?.focus(),
};

/** Keys that a button, a list or a scrolled panel needs for itself. */
const OWN = new Set<Command>(['inspect', 'left', 'right', 'up', 'down', 'farLeft', 'farRight', 'farUp', 'farDown']);

export const isText = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches('input:not([type=range]):not([type=checkbox]), textarea, select') || target.isContentEditable);

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const command = commandOf(event, isText(event.target));
  if (!command || (get().panel && command !== 'escape')) return;
  const target = event.target instanceof Element ? event.target : null;
  if (OWN.has(command) && target !== document.body && !target?.closest('.canvas')) return;
  if (command === 'inspect' && target?.closest('button')) return;
  if (OWN.has(command) && target?.matches('input[type=range]')) return;
  event.preventDefault();
  COMMANDS[command]();
}

const onCopy = (event: ClipboardEvent): void => {
  if (isText(event.target) || !window.getSelection()?.isCollapsed) return;
  const text = copyText();
  if (text === null || !event.clipboardData) return;
  event.clipboardData.setData('text/plain', text);
  event.preventDefault();
  if (event.type === 'cut') deleteChosen();
};

const onPaste = (event: ClipboardEvent): void => {
  if (isText(event.target)) return;
  const text = event.clipboardData?.getData('text/plain') ?? '';
  if (pasteText(text)) event.preventDefault();
  else if (text) notify('info', 'The clipboard holds no blocks.');
};

export function useKeys(): void {
  useEffect(() => {
    document.addEventListener('keydown', onKeyDown);
    document.addEventListener('copy', onCopy);
    document.addEventListener('cut', onCopy);
    document.addEventListener('paste', onPaste);
    return () => {
      document.removeEventListener('keydown', onKeyDown);
      document.removeEventListener('copy', onCopy);
      document.removeEventListener('cut', onCopy);
      document.removeEventListener('paste', onPaste);
    };
  }, []);
}
