// Stands in for the views of results until they are here.

import type { Summary, TensorRef } from '../api/types';

export interface ResultViewProps {
  run: string;
  block: string;
  pin: string;
  summary: Summary;
  marked?: number[][];
  onHoverCell: (index: number[] | null) => void;
}

export const ResultView = ({ summary }: ResultViewProps) => <pre>{summary.values.slice(0, 8).join(' ')}</pre>;
export const LossPlot = ({ values }: { values: number[] }) => <pre>{values.at(-1)}</pre>;
export const ExplainPanel = ({ block }: { block: string }) => <pre>{block}</pre>;
export const ComparePanel = ({ a, b }: { a: TensorRef; b: TensorRef }) => <pre>{a.block} {b.block}</pre>;
