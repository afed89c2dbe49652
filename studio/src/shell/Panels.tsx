// Gallery, keys, exported source, whose work this is.

import { download } from '../download';
import { KEYS } from '../keys';
import { notify, set, useStudio } from '../store/state';
import { ConnectPanel } from './ConnectPanel';
import { Dialog } from './Dialog';
import { openGallery } from './files';

export function GalleryCards() {
  const gallery = useStudio((state) => state.gallery);
  return (
    <div className="cards">
      {gallery.map((row) => (
        <button type="button" className="card" key={row.name} data-testid={`gallery-${row.name}`} onClick={() => void openGallery(row.name)}>
          <b>{row.title}</b><span>{row.summary}</span>
        </button>
      ))}
      {!gallery.length && <p className="quiet">The server has no pages to show.</p>}
    </div>
  );
}

function Help() {
  return (
    <table className="keys">
      <tbody>
        {KEYS.map(({ command, keys, title }) => (
          <tr key={command}><td>{keys.map((key) => <kbd key={key}>{key.replace('Arrow', '')}</kbd>)}</td><td>{title}</td></tr>
        ))}
        <tr><td><kbd>Ctrl+c</kbd><kbd>Ctrl+x</kbd><kbd>Ctrl+v</kbd></td><td>Copy, cut, paste: also between tabs, as text</td></tr>
        <tr><td><kbd>Tab</kbd></td><td>Next block, pin or field</td></tr>
        <tr><td><kbd>Shift</kbd> + drag</td><td>Select with a box; Shift + click adds to the selection</td></tr>
      </tbody>
    </table>
  );
}

function About() {
  const version = useStudio((state) => state.version);
  return (
    <div className="about">
      <p><b>convgrad {version}</b>, under the Apache License 2.0.</p>
      <p>This page is also made of other people’s packages, React and React Flow among them. <a href="./THIRD-PARTY-NOTICES.txt" target="_blank" rel="noreferrer" data-first data-testid="notices">Their licences</a> are in the installation, and open without a network.</p>
    </div>
  );
}

function Export() {
  const exported = useStudio((state) => state.exported);
  if (!exported) return null;
  const copy = () => navigator.clipboard.writeText(exported.source).then(() => notify('info', 'Copied.'), () => notify('problem', 'The browser did not allow copying.'));
  return (
    <>
      <pre className="source" data-testid="export-source" tabIndex={0}>{exported.source}</pre>
      <footer>
        <button type="button" className="tool" onClick={() => void copy()}>Copy</button>
        <button type="button" className="tool primary" data-first data-testid="export-download" onClick={() => { download(exported.name, exported.source); set({ panel: null }); }}>Download {exported.name}</button>
      </footer>
    </>
  );
}

export function Panels() {
  const panel = useStudio((state) => state.panel);
  switch (panel) {
    case 'gallery': return <Dialog title="Gallery" wide><GalleryCards /></Dialog>;
    case 'help': return <Dialog title="Keys"><Help /></Dialog>;
    case 'export': return <Dialog title="Export" wide><Export /></Dialog>;
    case 'about': return <Dialog title="About"><About /></Dialog>;
    case 'connect': return <Dialog title="Connect"><ConnectPanel /></Dialog>;
    case null: return null;
  }
}

/** What an empty page shows. */
export function Welcome() {
  const empty = useStudio((state) => state.ready && state.page.blocks.length === 0 && state.panel !== 'gallery');
  if (!empty) return null;
  return (
    <div className="welcome">
      <h1>An empty page</h1>
      <p>Drag a block from the palette, press <kbd>/</kbd> to search, drop a file, or begin with one of these.</p>
      <GalleryCards />
    </div>
  );
}
