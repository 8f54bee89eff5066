import { afterEach, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from '../command-line.ts';

const RUN = `run_${'a'.repeat(32)}`;
const AT = '2026-01-02T12:00:00.000Z';

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const part = (since: number, data: string[], further: object = {}) => ({
  ...{ step: 'restart', index: 0, leaseVersion: 1, more: false, complete: false },
  chunks: data.map((each, at) => ({ seq: since + at, stream: 'stdout', at: AT, data: each })),
  next: since + data.length,
  ...further,
});

/** Responds to requests for output with these parts, one after the other. */
async function printing(parts: object[], events: (asked: number) => object = () => ({})): Promise<string> {
  let asked = 0;
  let read = 0;
  api = await stubApi((path) => {
    if (path.includes('/output')) {
      read += 1;
      return { status: 200, body: parts[Math.min(read, parts.length) - 1] };
    }
    asked += 1;
    return { status: 200, body: events(asked) };
  });
  return api.url;
}

it('runs output prints whole lines, over several pages, and says that the command still runs', async () => {
  const url = await printing([part(0, ['first\nsec'], { more: true }), part(1, ['ond\nthi'])]);
  const { stdout, stderr } = await onTerminal(80, ['runs', 'output', RUN, 'restart', '--url', url]);
  expect(stdout).toBe('first\nsecond\nthi');
  expect(stderr).toContain('the command still runs');
  expect(api?.asked.filter((path) => path.includes('since=1'))).toHaveLength(1);
});

it('runs output needs no step if the run has one command, and names the commands if it has several', async () => {
  const note = { id: 'note', index: 0, tool: 'servicenow.work_note.add' };
  const [restart, check] = ['restart', 'check'].map((id, at) => ({ id, index: at + 1, tool: 'agent.command' }));
  const one = await printing([part(0, ['done\n'], { complete: true })], () => ({ steps: [note, restart] }));
  const { stdout } = await onTerminal(80, ['runs', 'output', RUN, '--url', one]);
  expect([stdout, api?.asked.some((path) => path.includes('/steps/1/output'))]).toEqual(['done', true]);
  await api?.close();
  const several = await printing([], () => ({ steps: [note, restart, check] }));
  const { exitCode, stderr } = await onTerminal(80, ['runs', 'output', RUN, '--url', several]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('add one: restart, check')]);
});

it('runs output --follow waits until the command has ended, and notes what is missing', async () => {
  const total = { bytes: 4, droppedBytes: 7, complete: false };
  const url = await printing([part(0, ['1\n']), part(1, []), part(1, ['2\n'], { complete: true, total })]);
  const { exitCode, stdout, stderr } = await onTerminal(80, ['runs', 'output', RUN, '0', '--follow', '--url', url]);
  expect([exitCode, stdout]).toEqual([0, '1\n2']);
  expect(stderr).toContain('did not arrive');
  expect(stderr).toContain('7 more bytes');
});

it('runs output shows no control characters of another machine, and prints JSON lines', async () => {
  const parts = [part(0, ['\u001b[2Jcleared\n'], { complete: true })];
  const url = await printing(parts);
  const shown = await onTerminal(80, ['runs', 'output', RUN, '0', '--url', url]);
  expect(shown.stdout).not.toContain('\u001b');
  await api?.close();
  const json = await onTerminal(80, ['runs', 'output', RUN, '0', '--json', '--url', await printing(parts)]);
  expect(JSON.parse(json.stdout)).toMatchObject({ step: 'restart', seq: 0, stream: 'stdout' });
});

it('runs watch prints the output of a command before the event that ends it', async () => {
  const of = { step: 'restart', index: 0, agent: 'acme.one_1', assignment: `${RUN}.0.1`, leaseVersion: 1 };
  const assigned = { type: 'step.assigned', ...of, profile: 'dev-flex', environment: 'dev', statementHash: 'a' };
  const commit = (seq: number, event: object) => ({ seq, at: AT, events: [event], prevHash: '', hash: '' });
  const ended = { type: 'run.status_changed', from: 'running', to: 'succeeded' };
  const url = await printing([part(0, ['restarted\n'], { complete: true })], (asked) =>
    asked === 1
      ? { status: 'running', commits: [commit(1, assigned)], next: 1, more: false }
      : { status: 'succeeded', commits: [commit(2, ended)], next: 2, more: false },
  );
  const { exitCode, stdout } = await onTerminal(100, ['runs', 'watch', RUN, '--url', url]);
  expect(exitCode).toBe(0);
  const lines = stdout.split('\n');
  expect(lines[0]).toContain('assigned to agent');
  expect(lines[1]).toBe('restart | restarted');
  expect(lines[2]).toContain('succeeded');
});
