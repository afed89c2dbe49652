// The views of results: what other rooms of the studio may use of this one.

import './views.css';

export { setZoom } from './zoom';
export { ComparePanel, type ComparePanelProps } from './ComparePanel';
export { ExplainPanel, type ExplainPanelProps } from './ExplainPanel';
export { GridEditor, type GridEditorProps } from './GridEditor';
export { LossPlot, type LossPlotProps } from './LossPlot';
export type { Mark, Marked } from './marks';
export { formatNumber, formatShape } from './numbers';
export { ResultView, type ResultViewProps } from './ResultView';
export { TracePanel, type TracePanelProps } from './TracePanel';
