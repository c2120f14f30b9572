import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  clearScreen: false,
  // Under vitest Svelte would otherwise resolve to its server build.
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  server: {
    port: 5173,
    strictPort: true,
    host: '127.0.0.1',
    proxy: { '/api': 'http://127.0.0.1:8642' },
  },
  build: {
    target: ['es2022', 'safari16'],
    // Everything is a file of our own origin, so that the CSP needs neither data: nor inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What lays diagrams out is large, and fetched by those who draw one.
    chunkSizeWarningLimit: 1_600,
  },
  test: {
    environment: 'node',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
  },
});
