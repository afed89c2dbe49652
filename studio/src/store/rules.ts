// What the browser knows of wires without asking the server: an output goes to an input of another block, and a pin
// that is no list takes one wire.

import type { Block, Page, PaletteRow, Source, Target } from '../api/types';
import { namesOf } from '../table';
import { blockOf, wiredInto, wiredOutOf, wiresOf } from './page';

export type Rows = ReadonlyMap<string, PaletteRow>;

export interface Pins {
  inputs: { name: string; list: boolean; literal: boolean }[];
  /** Pins with texts. */
  settings: string[];
  outputs: string[];
}

/** All pins of a block: those of its row, then those that only this page has. */
export function pinsOf(
  block: Block, row: PaletteRow | undefined, into: readonly string[], out: readonly string[],
): Pins {
  const inputs = row ? [...row.inputs] : [];
  const settings = row ? row.settings.map((setting) => setting.name) : [];
  if (row?.attributes.length && !settings.includes('attrs')) settings.push('attrs');
  const known = new Set([...inputs.map((pin) => pin.name), ...settings]);
  for (const name of new Set(into)) {
    if (!known.has(name)) inputs.push({ name, list: true, literal: false });
    known.add(name);
  }
  for (const name of namesOf(block.pins)) if (!known.has(name)) settings.push(name);
  const outputs = row ? [...row.outputs] : [];
  for (const name of out) if (!outputs.includes(name)) outputs.push(name);
  return { inputs, settings, outputs };
}

/** Why a wire cannot be, as far as that needs no server; null if it may. */
export function refusal(page: Page, rows: Rows, from: Source, to: Target): string | null {
  const [source, target] = [blockOf(page, from[0]), blockOf(page, to[0])];
  if (!source || !target) return 'both ends of a wire are pins of blocks';
  if (source === target) return 'a block does not feed itself';
  const outputs = pinsOf(source, rows.get(source.type), [], wiredOutOf(page, source.id)).outputs;
  if (!outputs.includes(from[1])) return `${from[1]} of ${from[0]} is not an output`;
  const pin = inputPin(page, rows, target, to[1]);
  if (!pin) return `${to[1]} of ${to[0]} is not an input`;
  if (!pin.list && wiresOf(page).some((wire) => wire.to[0] === to[0] && wire.to[1] === to[1]))
    return `${to[1]} of ${to[0]} has a wire already`;
  return null;
}

function inputPin(page: Page, rows: Rows, target: Block, name: string): { list: boolean } | undefined {
  const pins = pinsOf(target, rows.get(target.type), wiredInto(page, target.id), []);
  const wired = wiredInto(page, target.id).includes(name);
  return pins.inputs.find((pin) => pin.name === name) ?? (wired ? { list: false } : undefined);
}

/** Every pin a wire from here could go to, nearest blocks first. */
export function targetsOf(page: Page, rows: Rows, from: Source): Target[] {
  const here = blockOf(page, from[0])?.at ?? [0, 0];
  const distance = (block: Block) => Math.hypot((block.at?.[0] ?? 0) - here[0], (block.at?.[1] ?? 0) - here[1]);
  const far = new Map(page.blocks.map((block) => [block.id, distance(block)]));
  const blocks = [...page.blocks].sort((a, b) => (far.get(a.id) ?? 0) - (far.get(b.id) ?? 0));
  return blocks.flatMap((block) =>
    pinsOf(block, rows.get(block.type), wiredInto(page, block.id), []).inputs
      .map((pin): Target => [block.id, pin.name])
      .filter((to) => refusal(page, rows, from, to) === null),
  );
}

export const targetKey = (to: Target): string => JSON.stringify(to);
