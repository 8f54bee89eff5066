import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

/** Here, and not before the tests: each uses one core, and the other cores run tests meanwhile. */
it.each(['types', 'lint'])('npm run %s finds nothing', async (script) => {
  // An error contains what the command has printed.
  await promisify(execFile)('npm', ['run', '--silent', script], { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`npm run ${script}:\n${stdout}${stderr}`);
    },
  );
});
