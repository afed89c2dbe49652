// Blocks as text: a small page, so that what is copied can be pasted into another tab, a file or a mail.

import type { Page, Source, Wire } from '../api/types';
import { emptyPage, freeId, idsOf, wiresOf } from './page';

/** The chosen blocks and the wires between them. */
export function excerpt(page: Page, ids: ReadonlySet<string>): Page {
  return {
    ...emptyPage('clipboard'),
    blocks: page.blocks.filter((block) => ids.has(block.id)),
    wires: wiresOf(page).filter(({ from, to }) => ids.has(from[0]) && ids.has(to[0])),
  };
}

export const clipboardText = (page: Page, ids: ReadonlySet<string>): string =>
  JSON.stringify(excerpt(page, ids), null, 1);

export interface Pasted {
  page: Page;
  ids: string[];
}

/** Put blocks on a page under free ids; `move` shifts them. */
export function paste(page: Page, blocks: Page, move: [number, number]): Pasted {
  const taken = new Set(idsOf(page).keys());
  const names = new Map<string, string>();
  const added = blocks.blocks.map((block) => {
    const id = freeId(block.id, taken);
    taken.add(id);
    names.set(block.id, id);
    const at: [number, number] = [(block.at?.[0] ?? 0) + move[0], (block.at?.[1] ?? 0) + move[1]];
    return { ...block, id, at };
  });
  const wires = wiresOf(blocks).flatMap((wire): Wire[] => {
    const [source, target] = [names.get(wire.from[0]), names.get(wire.to[0])];
    if (source === undefined || target === undefined) return [];
    return [{ ...wire, from: [source, ...wire.from.slice(1)] as unknown as Source, to: [target, wire.to[1]] }];
  });
  const next = { ...page, blocks: [...page.blocks, ...added], wires: [...wiresOf(page), ...wires] };
  return { page: next, ids: [...names.values()] };
}
