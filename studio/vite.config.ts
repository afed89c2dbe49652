import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Leaves a list of the modules that are in the page: `tools/notices.py` looks for the licences of their packages. */
function bundled(): Plugin {
  return {
    name: 'convgrad-bundled',
    apply: 'build',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((part) => (part.type === 'chunk' ? Object.keys(part.modules) : []));
      const names = modules.map((id) => (id.startsWith('\0') ? id : relative('.', id).replaceAll('\\', '/')).split('?')[0]);
      writeFileSync('node_modules/.bundled.json', JSON.stringify([...new Set(names)].sort(), null, 1));
    },
  };
}

// The page is served by Python from the folder it is built into; nothing is fetched from elsewhere.
export default defineConfig({
  base: './',
  plugins: [react(), bundled()],
  build: { outDir: '../src/convgrad/_apps/studio/static', emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 600 },
  server: { proxy: { '/api': 'http://127.0.0.1:8765' } },
  test: { include: ['{src,test}/**/*.test.{ts,tsx}'], environment: 'node', isolate: false },
});
