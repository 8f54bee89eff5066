import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/local/synthesize-once.ts',
    // The end-to-end tests mostly wait for what they started, so there are more of them at once than cores.
    maxWorkers: '150%',
    // The local end-to-end tests start the whole system, and a busy machine may stall: these limits only end what hangs.
    hookTimeout: 300_000,
    testTimeout: 300_000,
  },
});
