import '@xyflow/react/dist/style.css';
import './theme.css';
import './blocks.css';
import { createRoot } from 'react-dom/client';
import { App } from './App';
import { startTheme } from './shell/theme';
import { begin } from './store/server';

startTheme();
const root = document.getElementById('root');
if (root) createRoot(root).render(<App />);
void begin();
