// What people do: every command of the menus and the keyboard that changes the page.

import type { PaletteRow, Source, Target, Tensor } from '../api/types';
import { type Alignment, align, distribute } from './arrange';
import { clipboardText, paste } from './clipboard';
import {
  addBlock, addWire, blockOf, emptyPage, freeId, idFor, idsOf, moveBy, newBlock, remove, rename, setPin, wireIds,
} from './page';
import { layered } from './layers';
import { pageOfText } from './reading';
import { cramped, overlaps, spread } from './spread';
import { amend, edit, get, isDirty, notify, openPage, select, set } from './state';

/** Add a block of a row; without a place, beside what is chosen. */
export function addFromPalette(row: PaletteRow, at: [number, number]): string {
  const id = freeId(idFor(row.type), idsOf(get().page));
  edit((page) => addBlock(page, newBlock(row, id, at)));
  select([id]);
  return id;
}

export function setText(id: string, pin: string, text: string): void {
  edit((page) => setPin(page, id, pin, text), `pin:${id}:${pin}`);
}

export function setTensor(id: string, pin: string, tensor: Tensor): void {
  edit((page) => setPin(page, id, pin, tensor), `tensor:${id}:${pin}`);
}

export function connect(from: Source, to: Target): void {
  edit((page) => addWire(page, from, to));
}

/** Rename a block; false, with a notice, if it cannot have the id. */
export function renameBlock(from: string, to: string): boolean {
  const result = rename(get().page, from, to);
  if (typeof result === 'string') {
    notify('problem', `${from} keeps its id: ${result}`);
    return false;
  }
  edit(() => result);
  set((state) => ({
    renaming: null, blocks: new Set([...state.blocks].map((id) => (id === from ? to : id))), wires: new Set(),
  }));
  return true;
}

export function deleteChosen(): void {
  const { blocks, wires } = get();
  edit((page) => remove(page, blocks, wires));
  select([]);
}

export function selectAll(): void {
  const { page } = get();
  select(idsOf(page).keys(), wireIds(page));
}

export function nudge(dx: number, dy: number): void {
  const { blocks } = get();
  edit((page) => moveBy(page, blocks, dx, dy), `nudge:${[...blocks].join()}`);
}

export function copyText(): string | null {
  const { page, blocks } = get();
  return blocks.size ? clipboardText(page, blocks) : null;
}

let pastes = 0;
let pasted = '';

/** Paste blocks, each time a little further; false if the text is no page. */
export function pasteText(text: string): boolean {
  const blocks = pageOfText(text);
  if (!blocks) return false;
  pastes = text === pasted ? pastes + 1 : 1;
  pasted = text;
  place(blocks, 32 * pastes);
  return true;
}

export function duplicate(): void {
  const blocks = pageOfText(copyText() ?? '');
  if (blocks) place(blocks, 32);
}

function place(blocks: ReturnType<typeof emptyPage>, shift: number): void {
  const result = paste(get().page, blocks, [shift, shift]);
  edit(() => result.page);
  select(result.ids);
}

export function alignChosen(to: Alignment): void {
  const { blocks, sizes } = get();
  edit((page) => align(page, blocks, sizes, to));
}

export function distributeChosen(along: 'across' | 'down'): void {
  const { blocks, sizes } = get();
  edit((page) => distribute(page, blocks, sizes, along));
}

export function newPage(): void {
  openPage(emptyPage(), true);
}

export function renamePage(name: string): void {
  edit((page) => (page.name === name ? page : { ...page, name }), 'name');
}

/** Begin a step that `amend` goes on with. */
export function beginMove(): void {
  edit((page) => ({ ...page }));
}

export { amend };

/** Where `c` starts a wire: the first output of the block chosen. */
export function firstOutput(): Source | null {
  const { page, blocks, rows } = get();
  const [id] = blocks;
  const block = id === undefined ? undefined : blockOf(page, id);
  const pin = block && rows.get(block.type)?.outputs[0];
  return block && pin !== undefined ? [block.id, pin] : null;
}

/** Move blocks apart, if any meet or, where asked for, are too near for the labels of wires; a page without changes stays one. */
export function makeRoom(wider: boolean): void {
  const state = get();
  if (!overlaps(state.page, state.sizes) && !(wider && cramped(state.page, state.sizes))) return;
  const page = spread(state.page, state.sizes, wider);
  set(isDirty(state) ? { page } : { page, saved: page });
}

/** Lay the whole page out anew. */
export function tidy(): void {
  const { sizes } = get();
  edit((page) => layered(page, sizes));
}
