// Light, dark, or as the system has it.

import { useEffect, useState } from 'react';
import { set, type ThemeMode, useStudio } from '../store/state';

const KEY = 'convgrad-theme';
const MODES: ThemeMode[] = ['system', 'light', 'dark'];

const dark = (): MediaQueryList => window.matchMedia('(prefers-color-scheme: dark)');
const resolve = (mode: ThemeMode): 'light' | 'dark' => (mode === 'system' ? (dark().matches ? 'dark' : 'light') : mode);

function show(mode: ThemeMode): void {
  document.documentElement.dataset['theme'] = resolve(mode);
}

/** Before the first drawing, so that nothing flashes. */
export function startTheme(): void {
  const kept = localStorage.getItem(KEY);
  const theme = MODES.find((mode) => mode === kept) ?? 'system';
  set({ theme });
  show(theme);
  dark().addEventListener('change', () => show(useStudio.getState().theme));
}

export function nextTheme(): void {
  const now = useStudio.getState().theme;
  const theme = MODES[(MODES.indexOf(now) + 1) % MODES.length] ?? 'system';
  localStorage.setItem(KEY, theme);
  set({ theme });
  show(theme);
}

export function useResolvedTheme(): 'light' | 'dark' {
  const mode = useStudio((state) => state.theme);
  const [, again] = useState(0);
  useEffect(() => {
    const query = dark();
    const look = () => again((count) => count + 1);
    query.addEventListener('change', look);
    return () => query.removeEventListener('change', look);
  }, []);
  return resolve(mode);
}
