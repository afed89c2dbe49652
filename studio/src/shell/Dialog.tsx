// A panel over the page. Escape or a click beside it closes it.

import { type ReactNode, useEffect, useRef } from 'react';
import { set } from '../store/state';

export function Dialog({ title, children, wide = false }: { title: string; children: ReactNode; wide?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    if (!box.current?.contains(before)) (box.current?.querySelector<HTMLElement>('[data-first]') ?? box.current)?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <div className="shade" onPointerDown={(event) => event.target === event.currentTarget && set({ panel: null })}>
      <div className={wide ? 'dialog wide' : 'dialog'} role="dialog" aria-modal="true" aria-label={title} tabIndex={-1} ref={box}>
        <header><h1>{title}</h1><button type="button" className="close" aria-label="Close" onClick={() => set({ panel: null })}>×</button></header>
        {children}
      </div>
    </div>
  );
}
