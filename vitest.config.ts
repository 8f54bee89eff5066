import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { HOST_GROUPS, testFile } from './test/host-groups.ts';
import { LONG_FILES } from './test/long-files.ts';

/**
 * Starts the long files first. A long file that starts last runs alone, while the other cores have nothing to do. Vitest knows how
 * long files took in the last run, but in a new clone it goes by their size, which says little.
 */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).filter(({ project }) => project.name !== AGENT);
    const long = LONG_FILES.flatMap((path) => sorted.filter(({ moduleId }) => moduleId.endsWith(`/${path}`)));
    return [
      ...files.filter((file) => !sorted.includes(file)),
      ...long,
      ...sorted.filter((file) => !long.includes(file)),
    ];
  }
}

/**
 * The tests of the agent start about a thousand programs. To start one, Node.js copies the table of its memory pages, which takes 30 times
 * as long in a process that other tests have filled. So these have processes of their own, and come first.
 */
const AGENT = 'agent';
/** All but one, which has a host. */
const AGENT_FILES = 'test/agent/!(local-host).test.ts';

/** Files that share a host run as their group, or alone if the command line names files. */
const namesFiles = process.argv
  .slice(2)
  .some((argument) => argument.includes('test/') && !argument.includes('host-group'));
const elsewhere = namesFiles ? Object.keys(HOST_GROUPS) : Object.values(HOST_GROUPS).flat();

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'others',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...elsewhere.map(testFile), AGENT_FILES],
        },
      },
      { extends: true, test: { name: AGENT, include: [AGENT_FILES] } },
    ],
    globalSetup: 'test/local/harness/synthesize-once.ts',
    // Files share a process and what it has loaded: starting one for each file took as long as the tests in them.
    // So a test leaves no environment variable, timer or global changed.
    isolate: false,
    execArgv: [
      // There are more threads than cores, so threads that help to collect garbage only take turns with them.
      '--single-threaded-gc',
      // Threads of the local host live for seconds; with the default size of 1 MiB they spend a fifth of that collecting garbage.
      '--min-semi-space-size=16',
      '--max-semi-space-size=32',
      // A process lives for minutes and has memory: it collects its whole heap only when that is large, and then drops no code.
      '--initial-old-space-size=512',
      '--no-flush-bytecode',
      // The code cache of a bundle then has all of its functions, and each new thread has less to compile.
      '--no-lazy',
    ],
    // For the programs that tests start: each would strip the types of its files, and compile them, again.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '.build', 'compile-cache') },
    // The end-to-end tests often wait for what they started, so there are more of them at once than cores. With two more than cores, a
    // machine with two cores is idle for a tenth of the time.
    maxWorkers: availableParallelism() + 4,
    sequence: { sequencer: LongFilesFirst },
    // The local end-to-end tests start the whole system, and a busy machine may stall: these limits only end what hangs.
    hookTimeout: 300_000,
    testTimeout: 300_000,
    expect: { poll: { timeout: 240_000 } },
  },
});
