// The canvas: blocks, wires, zoom, minimap, drop of blocks and files.

import {
  Background, BackgroundVariant, Controls, type EdgeChange, MiniMap, type NodeChange, ReactFlow, SelectionMode,
  useNodesInitialized, useStore,
} from '@xyflow/react';
import { type DragEvent, type FocusEvent, useCallback, useEffect, useRef } from 'react';
import { openFiles } from '../shell/files';
import { useResolvedTheme } from '../shell/theme';
import { addFromPalette, makeRoom } from '../store/actions';
import type { Size } from '../store/arrange';
import { GRID, moveTo, sameMeaning } from '../store/page';
import { amend, edit, get, select, set, useStudio } from '../store/state';
import { setZoom } from '../views';
import { BlockNode } from './BlockNode';
import { fitAll, pagePoint, setFlow } from './flow';
import { type BlockItem, useBlockItems, useWireItems, type WireItem } from './items';
import { WireEdge } from './WireEdge';
import { isValid, onConnect, onConnectEnd, onConnectStart } from './wiring';

const nodeTypes = { block: BlockNode };
const edgeTypes = { wire: WireEdge };
export const DRAGGED = 'application/x-convgrad-block';

function withChanges(chosen: ReadonlySet<string>, changes: { id: string; selected: boolean }[]): ReadonlySet<string> {
  const next = new Set(chosen);
  for (const { id, selected } of changes) selected ? next.add(id) : next.delete(id);
  return next;
}

/** Views of results take a while to reach their size; so long they may push blocks apart. */
const GROWING_MS = 3000;

/** Blocks grow by their results, and by what is wrong with them: whoever stands below makes room. */
function useRoom() {
  const done = useStudio((state) => (state.run?.state === 'done' ? state.run.id : null));
  const shown = useStudio((state) => state.resultsRun);
  const checks = useStudio((state) => state.checks);
  const sizes = useStudio((state) => state.sizes);
  const since = useRef(0);
  useEffect(() => {
    since.current = (done ?? shown) === null ? 0 : Date.now();
  }, [done, shown]);
  useEffect(() => {
    if ([...checks.values()].some((check) => check.problem)) since.current = Date.now();
  }, [checks]);
  useEffect(() => {
    if (Date.now() - since.current > GROWING_MS) return undefined;
    const wait = setTimeout(() => makeRoom(false), 150);
    return () => clearTimeout(wait);
  }, [done, sizes]);
}

/** Shows a page whole once its blocks have been measured, and makes room for results. */
function FitOnce() {
  const opened = useStudio((state) => state.opened);
  const measured = useNodesInitialized();
  const fitted = useRef(-1);
  useEffect(() => {
    if (!measured || fitted.current === opened) return;
    fitted.current = opened;
    makeRoom(true);
    requestAnimationFrame(fitAll);
  }, [opened, measured]);
  useRoom();
  return null;
}

/** From afar a block of a large page is a coloured card: its texts could not be read, and cost time to draw. */
function Far({ many }: { many: boolean }) {
  const far = useStore((state) => many && state.transform[2] < READABLE);
  const small = useStore((state) => state.transform[2] < LABELLED);
  const zoom = useStore((state) => state.transform[2]);
  useEffect(() => {
    document.querySelector('.react-flow')?.classList.toggle('far', far);
    document.querySelector('.react-flow')?.classList.toggle('small', small);
  }, [far, small]);
  useEffect(() => {
    const wait = setTimeout(() => setZoom(zoom), 120);
    return () => clearTimeout(wait);
  }, [zoom]);
  return null;
}

function useMoves() {
  const moving = useRef(false);
  return useCallback((changes: NodeChange<BlockItem>[]) => {
    const places = new Map<string, [number, number]>();
    const sizes = new Map<string, Size>();
    let dragging = false;
    for (const change of changes) {
      if (change.type === 'position' && change.position) places.set(change.id, [change.position.x, change.position.y]);
      if (change.type === 'position') dragging ||= change.dragging === true;
      if (change.type === 'dimensions' && change.dimensions) sizes.set(change.id, change.dimensions);
    }
    if (sizes.size) set((state) => ({ sizes: new Map([...state.sizes, ...sizes]) }));
    if (places.size) {
      (moving.current ? amend : edit)((page) => moveTo(page, places));
      moving.current = dragging;
    }
    const chosen = changes.filter((change) => change.type === 'select');
    if (chosen.length) set((state) => ({ blocks: withChanges(state.blocks, chosen) }));
  }, []);
}

function onEdgesChange(changes: EdgeChange<WireItem>[]): void {
  const chosen = changes.filter((change) => change.type === 'select');
  if (chosen.length) set((state) => ({ wires: withChanges(state.wires, chosen) }));
}

function onDrop(event: DragEvent): void {
  event.preventDefault();
  const at = pagePoint(event.clientX, event.clientY);
  const row = get().rows.get(event.dataTransfer.getData(DRAGGED));
  if (row) addFromPalette(row, [at[0] - 100, at[1] - 16]);
  else if (event.dataTransfer.files.length) {
    const node = event.target instanceof Element ? event.target.closest<HTMLElement>('.react-flow__node') : null;
    void openFiles([...event.dataTransfer.files], { block: node?.dataset['id'] ?? null, at });
  }
}

/** The keyboard chooses a block by reaching it. */
function onFocus(event: FocusEvent): void {
  const node = event.target;
  if (node.classList.contains('react-flow__node') && node.matches(':focus-visible')) {
    const id = node.getAttribute('data-id');
    if (id !== null && !get().blocks.has(id)) select([id]);
  }
}

export function Canvas() {
  const nodes = useBlockItems();
  const edges = useWireItems();
  const theme = useResolvedTheme();
  const onNodesChange = useMoves();
  const stale = useStudio((state) => state.ranPage !== null && !sameMeaning(state.ranPage, state.page));
  const why = useStudio((state) => state.drag?.why);
  return (
    <main className={stale ? 'canvas stale' : 'canvas'} onDrop={onDrop} onDragOver={(event) => event.preventDefault()} onFocus={onFocus}>
      <ReactFlow<BlockItem, WireItem>
        nodes={nodes} edges={edges} nodeTypes={nodeTypes} edgeTypes={edgeTypes} colorMode={theme}
        onInit={(instance) => setFlow(instance as never)} onNodesChange={onNodesChange} onEdgesChange={onEdgesChange}
        onConnect={onConnect} onConnectStart={onConnectStart} onConnectEnd={onConnectEnd} isValidConnection={isValid}
        deleteKeyCode={null} multiSelectionKeyCode={MULTI} selectionKeyCode="Shift" selectionMode={SelectionMode.Partial}
        snapToGrid snapGrid={SNAP} minZoom={0.05} maxZoom={3} connectionRadius={24} zoomOnDoubleClick={false}
        onlyRenderVisibleElements={nodes.length > MANY} edgesFocusable={false} disableKeyboardA11y elevateNodesOnSelect
      >
        <Background variant={BackgroundVariant.Dots} gap={GRID * 3} size={1.5} />
        <Controls showInteractive={false} />
        <MiniMap pannable zoomable style={MAP} ariaLabel="Map of the page" />
        <FitOnce />
        <Far many={nodes.length > MANY} />
      </ReactFlow>
      {why && <div className="drag-why" role="status">{why}</div>}
    </main>
  );
}

/** From here on, blocks out of sight are not drawn. */
const MANY = 150;
const READABLE = 0.35;
/** Below this zoom the labels of wires could not be read. */
const LABELLED = 0.5;
const MAP = { width: 160, height: 112 };
const MULTI = ['Shift', 'Meta', 'Control'];
const SNAP: [number, number] = [GRID, GRID];
