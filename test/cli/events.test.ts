import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { plainEnvironment, ROOT, Running } from './command-line.ts';

const DOCUMENTED_URL = 'http://127.0.0.1:4500';
const README = readFileSync(join(ROOT, 'events', 'README.md'), 'utf8');

interface Documented {
  title: string;
  command: string;
  status: number;
  /** A JSON response with `run_…` for any run, or the code of a problem. */
  answer: string;
}

/** Every section with a command: its heading, the command, and the line with its response. */
const documented: Documented[] = README.split(/^### /m)
  .slice(1)
  .map((section) => {
    const [, command = ''] = /```bash\n(.*?)```/s.exec(section) ?? [];
    const [, status = '', answer = ''] = /^Response: `(\d{3})` `(.*)`$/m.exec(section) ?? [];
    return { title: section.slice(0, section.indexOf('\n')), command, status: Number(status), answer };
  });

test('every sample has a command, and every command is complete', () => {
  const samples = readdirSync(join(ROOT, 'events')).filter((name) => name.endsWith('.json'));
  expect(samples.filter((name) => !documented.some(({ command }) => command.includes(`events/${name}`)))).toEqual([]);
  expect(
    documented.filter(({ command, status, answer }) => !command.includes('curl -i') || !status || !answer),
  ).toEqual([]);
});

const canRun = ['bash', 'curl', 'openssl'].every((tool) => spawnSync(tool, ['--version']).error === undefined);

describe.skipIf(!canRun)('the documented commands', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost();
  });
  afterAll(() => host?.stop());

  // In the order of the document: "again" means after the one above it.
  test.each(documented)('$title: responds with $status', async ({ command, status, answer }) => {
    const { exitCode, stdout, stderr } = await new Running(
      'bash',
      ['-e', '-o', 'pipefail', '-c', command.replaceAll(DOCUMENTED_URL, host.url)],
      plainEnvironment(),
    ).ended;
    expect(exitCode, stderr).toBe(0);
    const statuses = [...stdout.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, code]) => Number(code));
    expect(statuses.at(-1)).toBe(status);
    const body = stdout.slice(stdout.lastIndexOf('\r\n\r\n')).trim();
    const seen = status === 202 ? body.replace(/run_[0-9a-f]{32}/g, 'run_…') : JSON.parse(body).code;
    expect(seen).toBe(answer);
  });
});
