import './data/zod-without-eval.ts';
import './styles.css';
import './parts/forms.css';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { applyTheme } from './parts/preferences.ts';
import { startSession } from './sign-in/session.ts';

applyTheme();
const root = document.getElementById('root');
if (root) createRoot(root).render(<App />);
startSession();
