import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/local/synthesize-once.ts',
    // Files share a process and what it has loaded: starting one for each file took as long as the tests in them.
    // So a test leaves no environment variable, timer or global changed.
    isolate: false,
    // Threads of the local host live for seconds; with the default size of 1 MiB they spend a fifth of that collecting garbage.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32'],
    // The end-to-end tests mostly wait for what they started, so there are more of them at once than cores.
    maxWorkers: 2 * availableParallelism(),
    // The local end-to-end tests start the whole system, and a busy machine may stall: these limits only end what hangs.
    hookTimeout: 300_000,
    testTimeout: 300_000,
  },
});
