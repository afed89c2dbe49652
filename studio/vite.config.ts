import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The page is served by Python from the folder it is built into; nothing is fetched from elsewhere.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: { outDir: '../src/convgrad/_studio/static', emptyOutDir: true, assetsInlineLimit: 0 },
  server: { proxy: { '/api': 'http://127.0.0.1:8765' } },
  test: { include: ['{src,test}/**/*.test.{ts,tsx}'], environment: 'node' },
});
