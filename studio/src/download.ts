// Texts as downloads.

import type { Page } from './api/types';

export function download(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The name of a page's file: letters that every system takes. */
export const fileName = (name: string): string => `${name.replace(/[^\w.-]+/g, '_').replace(/^_+|_+$/g, '') || 'page'}.json`;

export const pageText = (page: Page): string => `${JSON.stringify(page, null, 1)}\n`;
