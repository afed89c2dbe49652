// Answers of the server by names of blocks and pins: objects of JSON as they come, Maps as they are kept.

import { mapOf, mapOfEach, type Table } from '../table';
import type { BlockCheck, Check, RunProgress, Summary, TensorSpec } from './types';

type BlockCheckJson = Omit<BlockCheck, 'tensors'> & { tensors: Table<TensorSpec> };
export type CheckJson = Omit<Check, 'blocks'> & { blocks: Table<BlockCheckJson> };

export function checkOf(answer: CheckJson): Check {
  const blocks = mapOfEach(answer.blocks, (block): BlockCheck => ({ ...block, tensors: mapOf(block.tensors) }));
  return { ...answer, blocks };
}

export type ProgressJson = Omit<RunProgress, 'ms' | 'results' | 'curves'> & {
  ms: Table<number>;
  results: Table<Table<Summary>>;
  curves: Table<(number | null)[]>;
};

export function progressOf(answer: ProgressJson): RunProgress {
  const { ms, results, curves } = answer;
  return { ...answer, ms: mapOf(ms), results: mapOfEach(results, mapOf), curves: mapOf(curves) };
}
