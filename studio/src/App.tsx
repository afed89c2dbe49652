import { ReactFlowProvider } from '@xyflow/react';
import { Canvas } from './canvas/Canvas';
import { Inspector } from './inspector/Inspector';
import { Palette } from './palette/Palette';
import { Notices } from './shell/Notices';
import { Panels, Welcome } from './shell/Panels';
import { StatusLine } from './shell/StatusLine';
import { Toolbar } from './shell/Toolbar';
import { useKeys } from './shell/useKeys';

export function App() {
  useKeys();
  return (
    <div className="app">
      <Toolbar />
      <Palette />
      <ReactFlowProvider>
        <Canvas />
      </ReactFlowProvider>
      <Inspector />
      <StatusLine />
      <Welcome />
      <Panels />
      <Notices />
    </div>
  );
}
