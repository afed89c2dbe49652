// @vitest-environment jsdom
// The views in a document without layout and without a canvas: what they say and what they answer to.

import { act, type ReactNode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Page, Summary, Trace } from '../api/types';
import { ComparePanel, ExplainPanel, GridEditor, LossPlot, ResultView, TracePanel, type Mark } from '.';

const tensors: Record<string, { shape: number[]; data: number[] }> = {
  y: { shape: [1, 2, 2, 2], data: [1, 2, 3, 4, 5, 6, 7, 8] },
  z: { shape: [1, 2, 2, 2], data: [1, 2, 3, 4, 5, 6, 7, 10] },
};
const trace: Trace = {
  terms: [
    {
      parts: [
        { pin: 'input', block: 'x', source_pin: 'output', index: [-1], value: 0, padding: true },
        { pin: 'filter', block: 'f', source_pin: 'output', index: [0], value: 2 },
      ],
      product: 0,
      padding: true,
    },
    {
      parts: [
        { pin: 'input', block: 'x', source_pin: 'output', index: [0], value: 3 },
        { pin: 'filter', block: 'f', source_pin: 'output', index: [1], value: 0.5 },
      ],
      product: 1.5,
    },
  ],
  sum: 1.5,
  value: 1.25,
  formula: 'y[p] = sum over r<2 of x[p+r-1] * f[r]',
  shown: 2,
  total: 2,
};
const summary: Summary = {
  dtype: 'float32',
  shape: [1, 2, 2, 2],
  min: 1,
  max: 8,
  mean: 4.5,
  std: 2.29129,
  nan: 0,
  inf: 0,
  histogram: { edges: [1, 4.5, 8], counts: [4, 4] },
  values: [1, 2, 3, 4, 5, 6, 7, 8],
};

let asked: string[] = [];
let root: Root;
let box: HTMLElement;

async function answer(path: string): Promise<Response> {
  asked.push(path);
  const block = new URL(path, 'http://studio/').searchParams.get('block') ?? '';
  const made = tensors[block];
  if (path.includes('/trace')) return Response.json(trace);
  if (path.includes('/explain')) {
    return Response.json({ text: 'conv2d, float32', document: { algorithm: 'winograd', bytes: 2000 } });
  }
  if (!made) return Response.json({ error: `run: no block "${block}"` }, { status: 404 });
  return new Response(Float32Array.from(made.data).buffer, {
    headers: { 'X-Shape': made.shape.join(), 'X-Dtype': 'float32' },
  });
}

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.stubGlobal('fetch', (path: string) => answer(path));
  // jsdom has no canvas; drawing does without.
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  asked = [];
  box = document.body.appendChild(document.createElement('div'));
  root = createRoot(box);
});
afterEach(async () => {
  await act(async () => root.unmount());
  box.remove();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Draw, and wait until every answer is in: a view that waits says so with an ellipsis. */
async function show(view: ReactNode) {
  await act(async () => root.render(view));
  const waiting = () => box.textContent?.includes('…') || box.querySelector('.v-waiting');
  for (let turn = 0; turn < 200 && (turn === 0 || waiting()); turn += 1) {
    await act(() => new Promise((resolve) => setTimeout(resolve, 10)));
  }
}
const press = (element: Element | null, key: string) =>
  act(async () => void element?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })));
const click = (element: Element | null | undefined) =>
  act(async () => void element?.dispatchEvent(new MouseEvent('click', { bubbles: true })));
const button = (text: string) => [...box.querySelectorAll('button')].find((one) => one.textContent === text);

describe('ResultView', () => {
  it('moves over cells by keys and tells which', async () => {
    const hovered: (number[] | null)[] = [];
    const picked: number[][] = [];
    const view = (
      <ResultView
        run="keys"
        block="y"
        pin="output"
        summary={summary}
        compact={false}
        onHoverCell={(index) => hovered.push(index)}
        onPickCell={(index) => picked.push(index)}
      />
    );
    await show(view);
    const canvas = box.querySelector('canvas');
    await press(canvas, 'ArrowRight');
    await press(canvas, 'ArrowDown');
    expect(hovered).toEqual([
      [0, 0, 0, 0],
      [0, 1, 0, 0],
    ]);
    expect(box.querySelector('[data-testid=cell-value]')?.textContent).toBe('[0, 1, 0, 0] 5');
    await press(canvas, 'Enter');
    expect(picked).toEqual([[0, 1, 0, 0]]);
  });

  it('fetches a result once for all its views', async () => {
    const view = <ResultView run="once" block="y" pin="output" summary={summary} />;
    await show([<div key="a">{view}</div>, <div key="b">{view}</div>]);
    expect(asked.filter((path) => path.includes('/tensor'))).toHaveLength(1);
  });

  it('fetches again when the numbers changed within the run', async () => {
    await show(<ResultView run="live" block="y" pin="output" summary={summary} />);
    await show(<ResultView run="live" block="y" pin="output" summary={{ ...summary, mean: 4 }} />);
    expect(asked).toHaveLength(2);
  });

  it('shows numbers, histogram and statistics', async () => {
    await show(<ResultView run="tabs" block="y" pin="output" summary={summary} compact={false} />);
    await click(button('numbers'));
    expect([...box.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent)).toEqual(['1', '3', '5', '7']);
    await click(button('histogram'));
    expect(box.querySelectorAll('.v-column')).toHaveLength(2);
    await click(button('statistics'));
    expect(box.textContent).toContain('standard deviation2.29129');
  });

  it('follows marks into their channel', async () => {
    const marked: Mark[] = [{ block: 'y', pin: 'output', cells: [[0, 1, 1, 1]] }];
    await show(<ResultView run="follow" block="y" pin="output" summary={summary} compact={false} marked={marked} />);
    await click(button('numbers'));
    expect(box.querySelector('.v-marked')?.textContent).toBe('8');
  });

  it("says the server's words when a result is gone", async () => {
    await show(<ResultView run="gone" block="q" pin="output" summary={summary} />);
    expect(box.querySelector('[role=alert]')?.textContent).toBe('run: no block "q"');
  });
});

describe('TracePanel', () => {
  it('steps through the sum and marks the cells of each step', async () => {
    let marks: Mark[] = [];
    const onMark = (now: Mark[]) => (marks = now);
    await show(<TracePanel run="r" block="y" pin="output" index={[0]} onMark={onMark} />);
    expect(box.querySelector('.v-formula')?.textContent).toBe(trace.formula);
    expect(marks.map((mark) => mark.block)).toEqual(['y', 'f', 'x']);
    expect(box.querySelectorAll('tr.v-padding')).toHaveLength(1);
    await click(box.querySelector('[aria-label="next term"]'));
    await click(box.querySelector('[aria-label="next term"]'));
    expect(box.querySelector('output')?.textContent).toBe('2 of 2');
    expect(marks.find((mark) => mark.block === 'x')?.current).toEqual([0]);
    expect(box.querySelector('tr[aria-current=step] .v-running')?.textContent).toBe('1.5');
    expect(box.querySelector('.v-totals')?.textContent).toContain('difference-0.25');
    await show(null);
    expect(marks).toEqual([]);
  });
});

describe('ComparePanel', () => {
  it('tells where two results differ', async () => {
    await show(
      <ComparePanel a={{ run: 'c', block: 'y', pin: 'output' }} b={{ run: 'c', block: 'z', pin: 'output' }} />,
    );
    expect(box.querySelector('.v-verdict')?.textContent).toBe('1 of 8 cells differ (12.5 %).');
    expect(box.textContent).toContain('difference20.2');
    expect(box.textContent).toContain('[0, 1, 1, 1]');
    const rows = [...box.querySelectorAll('[data-testid=compare-cells] tbody tr')];
    expect(rows).toHaveLength(8);
    expect(rows.filter((row) => row.classList.contains('v-differs'))).toHaveLength(1);
  });
  it('says that equal results are equal', async () => {
    await show(
      <ComparePanel a={{ run: 'c', block: 'y', pin: 'output' }} b={{ run: 'c', block: 'y', pin: 'output' }} />,
    );
    expect(box.querySelector('.v-verdict')?.textContent).toBe('All 8 cells are equal.');
  });
});

it('LossPlot tells the last value and counts what is not finite', async () => {
  await show(<LossPlot values={[2, null, 0.5]} compact={false} />);
  expect(box.textContent).toContain('loss 0.5 at step 3');
  expect(box.textContent).toContain('1 of 3 steps not finite');
});

it('ExplainPanel shows the facts and the text', async () => {
  const page: Page = { format: 'convgrad-page', version: 1, name: 'p', blocks: [{ id: 'y', type: 'Conv2D' }] };
  await show(<ExplainPanel page={page} block="y" />);
  expect(box.querySelector('.v-facts')?.textContent).toBe('algorithmwinogradbytes moved2 kB');
  expect(box.querySelector('pre')?.textContent).toBe('conv2d, float32');
});

describe('GridEditor', () => {
  it('paints by keyboard, fills and clears', async () => {
    let values: number[] = [];
    const onChange = (now: number[]) => (values = now);
    await show(<GridEditor shape={[2, 2]} values={[0, 0, 3, 0]} onChange={onChange} />);
    const paper = box.querySelector('.v-paper');
    await press(paper, 'ArrowRight');
    await press(paper, 'ArrowRight');
    await press(paper, ' ');
    expect(values).toEqual([0, 1, 3, 0]);
    await click(button('fill'));
    expect(values).toEqual([1, 1, 1, 1]);
    await click(button('clear'));
    expect(values).toEqual([0, 0, 0, 0]);
  });
  it('refuses a grid too large to draw', async () => {
    await show(<GridEditor shape={[100, 100]} values={[]} onChange={() => undefined} />);
    expect(box.textContent).toContain('too many to draw');
  });
});
