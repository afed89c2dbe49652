// The one store: the page, what is chosen, the history, and what the server said.

import { create } from 'zustand';
import type {
  BlockCheck, Check, Fits, GalleryRow, Page, PaletteRow, RunState, Source, Start, Summary,
} from '../api/types';
import type { Mark } from '../views';
import { sameMap } from '../table';
import type { Size } from './arrange';
import { type History, noHistory, redo, remember, undo } from './history';
import { emptyPage, idsOf } from './page';

export interface Run {
  id: string;
  state: RunState;
  step: number;
  steps: number;
  block: string | null;
  done: number;
  total: number;
  problem: string | null;
}

/** What can be done about a notice. */
export interface Action {
  title: string;
  run: () => void;
}

export interface Notice {
  key: number;
  kind: 'info' | 'problem';
  text: string;
  actions: Action[];
}

export interface Cell {
  block: string;
  pin: string;
  index: number[];
}

/** A wire being drawn, and what the server said of each pin it could go to. */
export interface Drag {
  from: Source;
  answers: ReadonlyMap<string, Fits>;
  why: string | null;
}

export type Panel = 'gallery' | 'help' | 'connect' | 'export' | 'about' | null;
export type ThemeMode = 'system' | 'light' | 'dark';

export interface State {
  page: Page;
  blocks: ReadonlySet<string>;
  wires: ReadonlySet<string>;
  history: History;
  saved: Page;
  file: string | null;

  version: string;
  rows: ReadonlyMap<string, PaletteRow>;
  /** A colour for every group of blocks. */
  hues: ReadonlyMap<string, number>;
  gallery: GalleryRow[];
  dtypes: string[];
  online: boolean;
  ready: boolean;

  checks: ReadonlyMap<string, BlockCheck>;
  checkMs: number | null;
  pageNotes: string[];

  run: Run | null;
  resultsRun: string | null;
  /** The page the results are of. */
  ranPage: Page | null;
  results: ReadonlyMap<string, ReadonlyMap<string, Summary>>;
  curves: ReadonlyMap<string, (number | null)[]>;
  times: ReadonlyMap<string, number>;
  autoRun: boolean;
  steps: number;
  /** Cells that made the cell being traced. */
  highlight: Mark[];
  /** The cell under the mouse, and the one clicked: that stays. */
  hovered: Cell | null;
  picked: Cell | null;

  drag: Drag | null;
  connectFrom: Source | null;
  panel: Panel;
  exported: { name: string; source: string } | null;
  renaming: string | null;
  notices: Notice[];
  theme: ThemeMode;
  /** Results that are shown or hidden against the rule. */
  shown: ReadonlyMap<string, boolean>;
  sizes: ReadonlyMap<string, Size>;
  /** Counts the pages opened: the canvas shows each of them whole once. */
  opened: number;
}

const first = emptyPage();

export const initial: State = {
  page: first, blocks: new Set(), wires: new Set(), history: noHistory(), saved: first, file: null,
  version: '', rows: new Map(), hues: new Map(), gallery: [], dtypes: [], online: true, ready: false,
  checks: new Map(), checkMs: null, pageNotes: [],
  run: null, resultsRun: null, ranPage: null, results: new Map(), curves: new Map(), times: new Map(), autoRun: false, steps: 1, highlight: [], hovered: null, picked: null,
  drag: null, connectFrom: null, panel: null, exported: null, renaming: null, notices: [], theme: 'system',
  shown: new Map(), sizes: new Map(), opened: 0,
};

export const useStudio = create<State>(() => initial);
export const get = useStudio.getState;
export const set = useStudio.setState;

export const isDirty = (state: State): boolean => state.page !== state.saved;

/** Put an edited page in place. Steps of the same name shortly after each other are undone as one. */
export function edit(change: (page: Page) => Page, step: string | null = null): void {
  set((state) => {
    const page = change(state.page);
    if (page === state.page) return state;
    return { page, history: remember(state.history, state.page, step, Date.now()) };
  });
}

/** Change the page within a step that has begun already, such as a block being dragged. */
export function amend(change: (page: Page) => Page): void {
  set((state) => ({ page: change(state.page) }));
}

function travel(way: typeof undo): void {
  set((state) => {
    const to = way(state.history, state.page);
    if (!to) return state;
    const ids = idsOf(to.page);
    return { ...to, blocks: new Set([...state.blocks].filter((id) => ids.has(id))), wires: new Set() };
  });
}
export const undoStep = (): void => travel(undo);
export const redoStep = (): void => travel(redo);

const NOTHING: ReadonlySet<string> = new Set();

export function select(blocks: Iterable<string>, wires: Iterable<string> = NOTHING): void {
  set({ blocks: new Set(blocks), wires: new Set(wires) });
}

/** What the server has said of the page, and what is made of that, before it has said anything. */
export function nothingSaid(): Partial<State> {
  return {
    checks: new Map(), checkMs: null, pageNotes: [], run: null, results: new Map(), resultsRun: null, ranPage: null,
    curves: new Map(), times: new Map(), highlight: [], hovered: null, picked: null,
  };
}

/** Open another page; what was there is one undo away. */
export function openPage(page: Page, clean: boolean): void {
  set((state) => ({
    page, history: remember(state.history, state.page, null, 0), ...(clean ? { saved: page } : {}),
    ...nothingSaid(), blocks: NOTHING, wires: NOTHING, shown: new Map(), sizes: new Map(), opened: state.opened + 1,
  }));
}

let notices = 0;
/** Tell something. A problem stays until it is closed, unless the page itself shows what came of it. */
export function notify(kind: Notice['kind'], text: string, actions: Action[] = [], passing = kind === 'info'): void {
  const notice: Notice = { key: ++notices, kind, text, actions };
  set((state) => ({ notices: [...state.notices.filter((each) => each.text !== text).slice(-3), notice] }));
  if (passing) setTimeout(() => dismiss(notice.key), actions.length ? 15000 : 6000);
}
export function dismiss(key: number): void {
  set((state) => ({ notices: state.notices.filter((notice) => notice.key !== key) }));
}

/** Take in what the server says at the start. */
export function started(start: Start): void {
  set({
    version: start.version, file: start.file, gallery: start.gallery, dtypes: start.dtypes, online: true,
    rows: new Map(start.blocks.map((row) => [row.type, row])),
    hues: new Map([...new Set(start.blocks.map((row) => row.group))].map((group, i) => [group, (200 + i * 137.5) % 360])),
  });
}

function sameCheck(a: BlockCheck | undefined, b: BlockCheck): boolean {
  if (a?.problem !== b.problem || JSON.stringify(a.notes) !== JSON.stringify(b.notes)) return false;
  return sameMap(a.tensors, b.tensors, (one, other) => JSON.stringify(one) === JSON.stringify(other));
}

/** Keep every answer that did not change, so that only changed blocks are drawn anew. */
export function checked(check: Check): void {
  set((state) => {
    const checks = new Map<string, BlockCheck>();
    let same = check.blocks.size === state.checks.size;
    for (const [id, now] of check.blocks) {
      const before = state.checks.get(id);
      const kept = sameCheck(before, now);
      checks.set(id, kept && before ? before : now);
      same &&= kept;
    }
    return { checks: same ? state.checks : checks, checkMs: check.ms, pageNotes: check.notes };
  });
}
