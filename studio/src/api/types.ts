// What the server and the browser say to each other. The browser never interprets the texts on pins. What comes by names
// of blocks and pins is a Map here: `client.ts` makes it of the objects of JSON.

import type { Table } from '../table';

/** A tensor that stands on a pin, or that a picture or an array file became. */
export interface Tensor {
  dtype: string;
  shape: number[];
  /** Numbers; texts and true or false for dtypes that have those. */
  data?: (number | string | boolean)[];
  base64?: string;
}

/** A text with a type of enuSpace's. */
export interface TypedText {
  text: string;
  type: string;
  shape?: number[];
  missing?: boolean;
}

export type PinValue = string | Tensor | TypedText;

export interface Block {
  id: string;
  type: string;
  at?: [number, number];
  pins?: Table<PinValue>;
  task?: string;
}

export type Source = [block: string, pin: string] | [block: string, pin: string, index: number];
export type Target = [block: string, pin: string];

export interface Wire {
  from: Source;
  to: Target;
  hidden?: boolean;
}

/** Our page file. */
export interface Page {
  format: 'convgrad-page';
  version: 1;
  name: string;
  blocks: Block[];
  wires?: Wire[];
  size?: [number, number];
  dialect?: string;
}

export type SettingKind = 'ints' | 'string' | 'type' | 'shape' | 'padding' | 'tensor' | 'text';

export interface InputRow {
  name: string;
  list: boolean;
  literal: boolean;
}

export interface SettingRow {
  name: string;
  kind: SettingKind;
  default: string;
  choices: string[] | null;
}

/** An attribute that stands on the pin `attrs` as `name_ = value;`. */
export interface AttributeRow {
  name: string;
  kind: string;
  default: string;
  choices: string[] | null;
}

/** One row of the palette: everything the browser knows of a block. */
export interface PaletteRow {
  type: string;
  group: string;
  summary: string;
  inputs: InputRow[];
  settings: SettingRow[];
  attributes: AttributeRow[];
  outputs: string[];
}

export interface GalleryRow {
  name: string;
  title: string;
  summary: string;
}

export interface Start {
  version: string;
  page: Page | null;
  file: string | null;
  blocks: PaletteRow[];
  gallery: GalleryRow[];
  dtypes: string[];
}

/** A null in a shape is a size nobody knows yet; a null shape is a rank nobody knows yet. */
export interface TensorSpec {
  dtype: string;
  shape: (number | null)[] | null;
}

export interface BlockCheck {
  problem: string | null;
  notes: string[];
  tensors: ReadonlyMap<string, TensorSpec>;
}

export interface Check {
  ms: number;
  blocks: ReadonlyMap<string, BlockCheck>;
  notes: string[];
}

export interface Fits {
  fits: boolean;
  why: string | null;
}

export interface Histogram {
  edges: (number | null)[];
  counts: number[];
}

/** Numbers that are not finite are null. */
export interface Summary {
  dtype: string;
  shape: number[];
  min: number | null;
  max: number | null;
  mean: number | null;
  std: number | null;
  nan: number;
  inf: number;
  histogram: Histogram;
  values: (number | null)[];
}

export type RunState = 'running' | 'done' | 'failed' | 'cancelled';

export interface RunProgress {
  state: RunState;
  version: number;
  step: number;
  steps: number;
  block: string | null;
  done: number;
  total: number;
  ms: ReadonlyMap<string, number>;
  results: ReadonlyMap<string, ReadonlyMap<string, Summary>>;
  curves: ReadonlyMap<string, (number | null)[]>;
  problem: string | null;
}

/** Where a result is. */
export interface TensorRef {
  run: string;
  block: string;
  pin: string;
}

/** A result in full: float32, C order. */
export interface TensorData {
  shape: number[];
  dtype: string;
  values: Float32Array;
}

/** One cell of an input that took part in a cell of a result. */
export interface TracePart {
  pin: string;
  block: string;
  source_pin: string;
  index: number[];
  value: number | null;
  padding?: boolean;
}

export interface TraceTerm {
  parts: TracePart[];
  product: number | null;
  padding?: boolean;
}

export interface Trace {
  terms: TraceTerm[];
  sum: number | null;
  value: number | null;
  formula: string;
  shown: number;
  total: number;
}

/** Cells to mark in the result of one pin. */
export interface Highlight {
  block: string;
  pin: string;
  cells: number[][];
}

export interface Explanation {
  text: string;
  document: Record<string, unknown>;
}

export type Language = 'python' | 'cpp' | 'svg';

export interface Exported {
  source: string;
  name: string;
}

export interface Imported {
  page: Page;
  notes: string[];
}

export interface Health {
  ok: boolean;
  boot: string;
}
