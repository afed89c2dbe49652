// What is shown when the studio fails to draw: the page as a download, and ways to go on. It stands outside of everything
// else and needs nothing of it but the store.

import { Component, type ReactNode } from 'react';
import { download, fileName, pageText } from '../download';
import { crashed, discard, resume } from '../store/start';
import { get, isDirty, undoStep } from '../store/state';

interface Props {
  children: ReactNode;
}

interface State {
  error: { value: unknown } | null;
}

export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(value: unknown): State {
    return { error: { value } };
  }

  override componentDidCatch(): void {
    crashed();
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const after = (first: () => void) => () => {
      first();
      this.setState({ error: null });
    };
    return <Crash error={error.value} after={after} />;
  }
}

function Crash({ error, after }: { error: unknown; after: (first: () => void) => () => void }) {
  const state = get();
  const { page, version, history } = state;
  const said = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  const back = () => {
    undoStep();
    resume();
  };
  return (
    <main className="crash" role="alert" data-testid="crash">
      <div>
        <h1>The studio failed to draw this page</h1>
        <p>The mistake is the studio’s, not yours. “{page.name}” with its {page.blocks.length} {page.blocks.length === 1 ? 'block' : 'blocks'} is not lost: download it first, then go on.</p>
        <pre className="problem" data-testid="crash-error">{said}</pre>
        <div className="ways">
          <button type="button" className="tool primary" autoFocus data-testid="crash-download" onClick={() => download(fileName(page.name), pageText(page))}>Download the page</button>
          {history.past.length > 0 && <button type="button" className="tool" data-testid="crash-undo" onClick={after(back)}>Undo the last step</button>}
          <button type="button" className="tool" data-testid="crash-again" onClick={after(resume)}>Try again</button>
          <span className="grow" />
          <button type="button" className="tool danger" data-testid="crash-discard" onClick={after(discard)}>Discard it and start empty</button>
        </div>
        {isDirty(state) && <p className="quiet">Unsaved work has been put aside. After a reload it is offered, but not opened by itself.</p>}
        <details>
          <summary>For a report of this mistake</summary>
          <pre>{`convgrad ${version}\n${navigator.userAgent}\n${stack ?? said}`}</pre>
        </details>
      </div>
    </main>
  );
}
