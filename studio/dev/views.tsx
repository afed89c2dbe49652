// Every view of results on one page, in light and dark: for looking at while one works on them.
// `npx vite` and open /dev/views.html (?dark for dark, ?only=trace for one of them).

import { StrictMode, useEffect, useState, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import type { Page } from '../src/api/types';
import { ComparePanel, ExplainPanel, GridEditor, LossPlot, ResultView, TracePanel, type Mark } from '../src/views';
import '../src/theme.css';
import { answer, summaryOf, tensors } from './answers';

window.fetch = (path, init) => answer(String(path), init);
const asked = new URLSearchParams(window.location.search);
const dark = asked.has('dark');
const only = asked.get('only');
const run = 'r1';
const page: Page = { format: 'convgrad-page', version: 1, name: 'story', blocks: [{ id: 'y', type: 'Conv2D' }] };

document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
document.body.style.padding = '16px';

const summaries = Object.fromEntries(Object.entries(tensors).map(([name, made]) => [name, summaryOf(made)]));

function Frame({ name, width, children }: { name: string; width: number; children: ReactNode }) {
  if (only && only !== name) return null;
  return (
    <section
      style={{ width, background: 'var(--panel)', border: '1px solid var(--line)', borderRadius: 8, padding: 10 }}
    >
      <div style={{ fontSize: 11, opacity: 0.6, marginBottom: 6 }}>{name}</div>
      {children}
    </section>
  );
}

function Result({
  of,
  ...rest
}: {
  of: string;
  marked?: Mark[];
  hint?: string;
  onHoverCell?: (index: number[] | null) => void;
}) {
  return <ResultView run={run} block={of} pin="output" summary={summaries[of]!} {...rest} />;
}

/** A loss that grows by itself, apart so that nothing else is drawn with it. */
function Live() {
  const [losses, setLosses] = useState(() => Array.from({ length: 120 }, (_, at) => 2.3 * Math.exp(-at / 30) + 0.05));
  useEffect(() => {
    const timer = setInterval(() => {
      setLosses((old) => (old.length > 400 ? old : [...old, (old.at(-1) ?? 1) * (0.97 + 0.05 * Math.random())]));
    }, 200);
    return () => clearInterval(timer);
  }, []);
  return <LossPlot values={losses} />;
}

function Story() {
  const [marks, setMarks] = useState<Mark[]>([]);
  const [index, setIndex] = useState([0, 0, 2, 1]);
  const [drawn, setDrawn] = useState([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, -1]);
  return (
    <div style={{ display: 'flex', flexWrap: 'wrap', gap: 14, alignItems: 'flex-start' }}>
      <Frame name="trace" width={620}>
        <TracePanel run={run} block="y" pin="output" index={index} onMark={setMarks} />
      </Frame>
      <Frame name="x marked" width={400}>
        <Result of="x" marked={marks} />
      </Frame>
      <Frame name="f marked" width={400}>
        <Result of="f" marked={marks} hint="filter" />
      </Frame>
      <Frame name="y" width={460}>
        <Result of="y" marked={marks} onHoverCell={(at) => at && setIndex(at)} />
      </Frame>
      <Frame name="compact" width={200}>
        <Result of="x" marked={marks} />
      </Frame>
      <Frame name="compact photo" width={200}>
        <Result of="photo" />
      </Frame>
      <Frame name="compact scalar" width={200}>
        <Result of="one" />
      </Frame>
      <Frame name="compact line" width={200}>
        <Result of="line" />
      </Frame>
      <Frame name="photo" width={520}>
        <Result of="photo" />
      </Frame>
      <Frame name="odd" width={480}>
        <Result of="odd" />
      </Frame>
      <Frame name="cube" width={480}>
        <Result of="cube" />
      </Frame>
      <Frame name="large" width={480}>
        <Result of="large" />
      </Frame>
      <Frame name="missing" width={330}>
        <ResultView run={run} block="gone" pin="output" summary={summaries['large']!} />
      </Frame>
      <Frame name="compare" width={560}>
        <ComparePanel a={{ run, block: 'y', pin: 'output' }} b={{ run, block: 'wrong', pin: 'output' }} />
      </Frame>
      <Frame name="compare shapes" width={330}>
        <ComparePanel a={{ run, block: 'y', pin: 'output' }} b={{ run, block: 'x', pin: 'output' }} />
      </Frame>
      <Frame name="loss" width={460}>
        <Live />
      </Frame>
      <Frame name="loss compact" width={200}>
        <Live />
      </Frame>
      <Frame name="loss broken" width={330}>
        <LossPlot values={[1, 0.5, null, 0.2, 0.1]} />
      </Frame>
      <Frame name="explain" width={560}>
        <ExplainPanel page={page} block="y" />
      </Frame>
      <Frame name="trace narrow" width={286}>
        <TracePanel run={run} block="y" pin="output" index={index} />
      </Frame>
      <Frame name="compare narrow" width={286}>
        <ComparePanel a={{ run, block: 'y', pin: 'output' }} b={{ run, block: 'wrong', pin: 'output' }} />
      </Frame>
      <Frame name="explain narrow" width={286}>
        <ExplainPanel page={page} block="y" />
      </Frame>
      <Frame name="draw narrow" width={286}>
        <GridEditor shape={[1, 12, 12, 2]} values={drawn} onChange={setDrawn} />
      </Frame>
      <Frame name="draw" width={330}>
        <GridEditor shape={[3, 4]} values={drawn} onChange={setDrawn} />
      </Frame>
    </div>
  );
}

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Story />
    </StrictMode>,
  );
}
