// Pure edits of a page: each returns a new page that shares everything it did not change.

import type { Block, Page, PaletteRow, PinValue, Source, Target, Wire } from '../api/types';
import { tableOf, valueAt, withValue } from '../table';

export const GRID = 8;

export function emptyPage(name = 'untitled'): Page {
  return { format: 'convgrad-page', version: 1, name, blocks: [], wires: [] };
}

export const snap = (value: number): number => Math.round(value / GRID) * GRID;

function memo<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const kept = new WeakMap<K, V>();
  return (key) => {
    let value = kept.get(key);
    if (value === undefined) kept.set(key, (value = make(key)));
    return value;
  };
}

/** Blocks by id, made once per list of blocks. */
const byId = memo((blocks: Block[]) => new Map(blocks.map((block) => [block.id, block])));
export const blockOf = (page: Page, id: string): Block | undefined => byId(page.blocks).get(id);
export const idsOf = (page: Page): ReadonlyMap<string, Block> => byId(page.blocks);

/** What stands on a pin. */
export const pinOf = (block: Block, pin: string): PinValue | undefined => valueAt(block.pins, pin);

const NO_WIRES: Wire[] = [];
export const wiresOf = (page: Page): Wire[] => page.wires ?? NO_WIRES;

/** A name for every wire, the same as long as the wire is; two equal wires of a list pin are told apart. */
const named = memo((wires: Wire[]) => {
  const seen = new Map<string, number>();
  return wires.map((wire) => {
    const name = JSON.stringify([wire.from, wire.to]);
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count ? `${name}#${count}` : name;
  });
});
export const wireIds = (page: Page): string[] => named(wiresOf(page));

const NONE: readonly string[] = [];
/** Wires that touch a block, as texts, so that a block is drawn anew only if its own wires changed. */
const touching = memo((wires: Wire[]) => {
  const ends = new Map<string, { in: string[]; out: string[] }>();
  const of = (id: string) => {
    let found = ends.get(id);
    if (!found) ends.set(id, (found = { in: [], out: [] }));
    return found;
  };
  for (const { from, to } of wires) {
    of(from[0]).out.push(from[1]);
    of(to[0]).in.push(to[1]);
  }
  return ends;
});
export const wiredInto = (page: Page, id: string): readonly string[] => touching(wiresOf(page)).get(id)?.in ?? NONE;
export const wiredOutOf = (page: Page, id: string): readonly string[] => touching(wiresOf(page)).get(id)?.out ?? NONE;

/** A free id that looks like the one wished: `conv`, `conv_2`, ... */
export function freeId(wish: string, taken: { has(id: string): boolean }): string {
  if (!taken.has(wish)) return wish;
  const stem = wish.replace(/_\d+$/, '');
  for (let count = 2; ; count++) if (!taken.has(`${stem}_${count}`)) return `${stem}_${count}`;
}

/** `Conv2DBackpropInput` becomes `conv2d_backprop_input`. */
export function idFor(type: string): string {
  return type.replace(/([a-z])([A-Z])/g, '$1_$2').replace(/([A-Z0-9])([A-Z][a-z])/g, '$1_$2').replace(/[^A-Za-z0-9_]+/g, '_').toLowerCase();
}

/** A new block as its row of the palette starts it. */
export function newBlock(row: PaletteRow, id: string, at: [number, number]): Block {
  const pins = new Map<string, PinValue>();
  for (const setting of row.settings) if (setting.name !== 'attrs') pins.set(setting.name, setting.default);
  const attrs = row.settings.find((setting) => setting.name === 'attrs');
  if (attrs) pins.set('attrs', attrs.default);
  else if (row.attributes.length) {
    const set = row.attributes.filter((attribute) => attribute.default !== '');
    pins.set('attrs', set.map((attribute) => `${attribute.name} = ${attribute.default}`).join('; '));
  }
  return { id, type: row.type, at: [snap(at[0]), snap(at[1])], pins: tableOf(pins) };
}

export function addBlock(page: Page, block: Block): Page {
  return { ...page, blocks: [...page.blocks, block] };
}

const changed = (page: Page, id: string, change: (block: Block) => Block): Page => ({
  ...page,
  blocks: page.blocks.map((block) => (block.id === id ? change(block) : block)),
});

export function setPin(page: Page, id: string, pin: string, value: PinValue): Page {
  const block = blockOf(page, id);
  if (!block || pinOf(block, pin) === value) return page;
  return changed(page, id, (now) => ({ ...now, pins: withValue(now.pins, pin, value) }));
}

export function moveTo(page: Page, places: ReadonlyMap<string, [number, number]>): Page {
  const blocks = page.blocks.map((block) => {
    const at = places.get(block.id);
    const moved = at && (at[0] !== block.at?.[0] || at[1] !== block.at?.[1]);
    return moved ? { ...block, at } : block;
  });
  return blocks.every((block, i) => block === page.blocks[i]) ? page : { ...page, blocks };
}

export function moveBy(page: Page, ids: ReadonlySet<string>, dx: number, dy: number): Page {
  const places = new Map<string, [number, number]>();
  for (const { id, at } of page.blocks) if (ids.has(id)) places.set(id, [(at?.[0] ?? 0) + dx, (at?.[1] ?? 0) + dy]);
  return moveTo(page, places);
}

/** Remove blocks with their wires, and wires by their names. */
export function remove(page: Page, blocks: ReadonlySet<string>, wires: ReadonlySet<string>): Page {
  const names = wireIds(page);
  const kept = wiresOf(page).filter(
    ({ from, to }, i) => !blocks.has(from[0]) && !blocks.has(to[0]) && !wires.has(names[i] ?? ''),
  );
  const left = page.blocks.filter((block) => !blocks.has(block.id));
  if (left.length === page.blocks.length && kept.length === wiresOf(page).length) return page;
  return { ...page, blocks: left, wires: kept };
}

export function addWire(page: Page, from: Source, to: Target): Page {
  return { ...page, wires: [...wiresOf(page), { from, to }] };
}

/** Say which item of a list of outputs a wire takes; null takes the pin as it is. */
export function setIndex(page: Page, wire: string, index: number | null): Page {
  const names = wireIds(page);
  const wires = wiresOf(page).map((each, i): Wire => {
    if (names[i] !== wire) return each;
    const [block, pin] = each.from;
    return { ...each, from: index === null ? [block, pin] : [block, pin, index] };
  });
  return { ...page, wires };
}

/** Rename a block and the ends of its wires; a text says why it cannot be. */
export function rename(page: Page, from: string, to: string): Page | string {
  if (from === to) return page;
  if (!to.trim()) return 'a block needs an id';
  if (idsOf(page).has(to)) return `another block has the id ${to}`;
  const wires = wiresOf(page).map((wire): Wire => {
    if (wire.from[0] !== from && wire.to[0] !== from) return wire;
    const source: Source = wire.from[0] === from ? ([to, ...wire.from.slice(1)] as unknown as Source) : wire.from;
    return { ...wire, from: source, to: wire.to[0] === from ? [to, wire.to[1]] : wire.to };
  });
  return { ...changed(page, from, (block) => ({ ...block, id: to })), wires };
}

/** Whether the server has to look again: places and the name of the page change nothing. */
export function sameMeaning(a: Page, b: Page): boolean {
  if (a === b) return true;
  if (wiresOf(a) !== wiresOf(b) || a.dialect !== b.dialect || a.blocks.length !== b.blocks.length) return false;
  return a.blocks.every((block, i) => {
    const other = b.blocks[i];
    return block === other || (block.id === other?.id && block.type === other.type && block.pins === other.pins);
  });
}
