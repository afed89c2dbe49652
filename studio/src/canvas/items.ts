// Blocks and wires as the canvas wants them. A node holds its place only: a text typed into a block changes no node,
// so the canvas has nothing to do but draw that block.

import type { Edge, Node } from '@xyflow/react';
import { useRef } from 'react';
import type { Block, Page, Wire } from '../api/types';
import type { Size } from '../store/arrange';
import { wireIds, wiresOf } from '../store/page';
import { useStudio } from '../store/state';

export type BlockItem = Node<Record<string, never>, 'block'>;
export type WireItem = Edge<{ wire: Wire }, 'wire'>;

const NO_DATA: Record<string, never> = {};

function nodeOf(block: Block, chosen: boolean, size: Size | undefined, before: BlockItem | undefined): BlockItem {
  const [x, y] = block.at ?? [0, 0];
  const { position, selected, measured } = before ?? {};
  if (before && position?.x === x && position.y === y && selected === chosen && measured === size) return before;
  return { id: block.id, type: 'block', position: { x, y }, selected: chosen, data: NO_DATA, ...(size ? { measured: size } : {}) };
}

function keepSame<T>(before: readonly T[], now: T[]): T[] {
  return before.length === now.length && now.every((item, i) => item === before[i]) ? (before as T[]) : now;
}

export function useBlockItems(): BlockItem[] {
  const blocks = useStudio((state) => state.page.blocks);
  const chosen = useStudio((state) => state.blocks);
  const sizes = useStudio((state) => state.sizes);
  const kept = useRef<{ list: BlockItem[]; byId: Map<string, BlockItem> }>({ list: [], byId: new Map() });
  const { byId } = kept.current;
  const now = blocks.map((block) => nodeOf(block, chosen.has(block.id), sizes.get(block.id), byId.get(block.id)));
  const list = keepSame(kept.current.list, now);
  if (list !== kept.current.list) kept.current = { list, byId: new Map(list.map((item) => [item.id, item])) };
  return list;
}

function edgesOf(page: Page, chosen: ReadonlySet<string>, before: ReadonlyMap<string, WireItem>): WireItem[] {
  const names = wireIds(page);
  return wiresOf(page).map((wire, i) => {
    const id = names[i] ?? '';
    const old = before.get(id);
    const selected = chosen.has(id);
    if (old?.data?.wire === wire && old.selected === selected) return old;
    const [[source, sourceHandle], [target, targetHandle]] = [wire.from, wire.to];
    return { id, type: 'wire', source, sourceHandle, target, targetHandle, selected, data: { wire } };
  });
}

export function useWireItems(): WireItem[] {
  const wires = useStudio((state) => state.page.wires);
  const chosen = useStudio((state) => state.wires);
  const kept = useRef<WireItem[]>([]);
  const page = useStudio.getState().page;
  const now = edgesOf(page.wires === wires ? page : { ...page, wires: wires ?? [] }, chosen, new Map(kept.current.map((item) => [item.id, item])));
  kept.current = keepSame(kept.current, now);
  return kept.current;
}
