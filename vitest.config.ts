import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/local/synthesize-once.ts',
    // The end-to-end tests mostly wait for what they started, so there are more of them at once than cores.
    maxWorkers: '150%',
    // The local end-to-end tests start the whole system, so a hook may take as long as a cold start.
    hookTimeout: 60_000,
    testTimeout: 60_000,
  },
});
