import '@xyflow/react/dist/style.css';
import './theme.css';
import './blocks.css';
import { createRoot } from 'react-dom/client';
import { App } from './App';
import { Boundary } from './shell/Boundary';
import { startTheme } from './shell/theme';
import { failed } from './store/server';
import { begin } from './store/start';

startTheme();
const root = document.getElementById('root');
if (root) createRoot(root).render(<Boundary><App /></Boundary>);
begin().catch(failed);
