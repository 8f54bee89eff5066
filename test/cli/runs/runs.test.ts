import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunPage, ShownReceipt, ShownStep } from '../../../bin/client/api-client.ts';
import { incident, incidentInserted } from '../../local/harness/deliveries.ts';
import { inParallel } from '../../local/harness/eventually.ts';
import { GLOBEX_KEY } from '../../local/harness/host-client.ts';
import { startTestHost, type TestHost } from '../../local/harness/test-host.ts';
import { countersign, onTerminal, piped, startCountersign } from '../command-line.ts';

const ESCAPE = '\u001b';

let host: TestHost;
/** A triaged incident, three labelled issues, and a run that failed: oldest first. */
let triaged: string;
let labelled: string[];
let failed: string;

beforeAll(async () => {
  host = await startTestHost();
  triaged = await host.fileIncident(incident('orders', { short_description: 'Orders database is slow' }));
  await host.approve(triaged);
  await host.waitForRun(triaged);
  labelled = [];
  for (const number of [1, 2, 3]) labelled.push(await host.openIssue(number));
  const unknown = incidentInserted(incident('nowhere'));
  const { body } = await host.sendServicenow(unknown);
  failed = body.runIds[0] ?? '';
  await host.approve(failed);
  for (const runId of [...labelled, failed]) await host.waitForRun(runId);
});

afterAll(() => host?.stop());

const cli = (...args: string[]) => piped(args, { COUNTERSIGN_URL: host.url });
/** A succeeded write with every value in full. */
async function stepOf(runId: string, id: string) {
  const index = (await host.run(runId)).steps.findIndex((step) => step.id === id);
  return (await host.api(`/runs/${runId}/steps/${index}`)).body as {
    step: Extract<ShownStep, { status: 'succeeded' }>;
    receipt: Extract<ShownReceipt, { outcome: 'succeeded' }> | null;
  };
}
const newestFirst = () => [failed, ...[...labelled].reverse(), triaged];

describe('runs list', () => {
  test('prints one line per run, newest first, in full and without colours in a pipe', async () => {
    const { exitCode, stdout } = await countersign(['runs', 'list'], { COUNTERSIGN_URL: host.url });
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(exitCode).toBe(0);
    expect(head).toMatch(/^RUN +STATUS +ERROR +ACCEPTED +TOOK +AUTOMATION +SUBJECT +TITLE$/);
    expect(rows.map((row) => row.split(/ {2,}/)[0])).toEqual(newestFirst());
    expect(rows.at(-1)).toMatch(
      / {2}succeeded .*T.*Z .*triage-incident {2}servicenow:acme:INC\d+ +Orders database is slow$/,
    );
    expect(rows[0]).toContain('  failed_terminal  ');
    expect(stdout).not.toContain(ESCAPE);
  });

  test('aligns its columns', async () => {
    const [head = '', ...rows] = (await cli('runs', 'list')).stdout.trimEnd().split('\n');
    const subjectAt = head.indexOf('SUBJECT');
    for (const row of rows) expect(row.slice(subjectAt - 2)).toMatch(/^ {2}(servicenow|github):/);
  });

  test('prints the response of the API with --json', async () => {
    const { stdout } = await cli('runs', 'list', '--json');
    expect(JSON.parse(stdout)).toEqual((await host.api('/runs')).body);
  });

  test('filters by status', async () => {
    const { stdout } = await cli('runs', 'list', '--status', 'failed_terminal', '--json');
    expect((JSON.parse(stdout) as RunPage).runs.map(({ runId }) => runId)).toEqual([failed]);
  });

  test('filters by automation, subject, error code and title, and counts', async () => {
    const found = async (...options: string[]) => {
      const { stdout } = await cli('runs', 'list', '--json', ...options);
      return (JSON.parse(stdout) as RunPage).runs.map(({ runId }) => runId);
    };
    expect(await found('--automation', 'triage-incident')).toEqual([failed, triaged]);
    expect(await found('--workflow', 'triage-incident', '--since', '1h')).toEqual([failed, triaged]);
    expect(await found('--subject', 'octo-org/payments#2')).toEqual([labelled[1]]);
    const { error } = await host.run(failed);
    expect(await found('--error', error?.code.toLowerCase() ?? '')).toEqual([failed]);
    expect(await found('--text', 'ORDERS')).toEqual([triaged]);
    expect(await found('--overdue')).toEqual([]);
    const { stdout } = await cli('runs', 'list', '--counts');
    expect(stdout).toMatch(/\n\nsucceeded 4, failed_terminal 1\n$/);
    const { exitCode, stderr } = await cli('runs', 'list', '--error', 'DRIFTET');
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining('errorCode: "DRIFTET" is not valid; did you mean "DRIFTED"?'),
    ]);
  });

  test('reads page by page with a cursor, without gaps or duplicates', async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { stdout } = await cli('runs', 'list', '--json', '--limit', '2', ...(cursor ? ['--cursor', cursor] : []));
      const page = JSON.parse(stdout) as RunPage;
      expect(page.runs.length).toBeLessThanOrEqual(2);
      seen.push(...page.runs.map(({ runId }) => runId));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(newestFirst());
  });

  test('prints the hint for more pages on stderr', async () => {
    const { stdout, stderr } = await cli('runs', 'list', '--limit', '2');
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
    expect(stderr).toMatch(/there are more: use --all, or --cursor \S+/);
  });

  test('reads all pages with --all', async () => {
    const { stdout, stderr } = await cli('runs', 'list', '--all', '--limit', '2', '--json');
    expect((JSON.parse(stdout) as RunPage).runs.map(({ runId }) => runId)).toEqual(newestFirst());
    expect(JSON.parse(stdout).nextCursor).toBeNull();
    expect(stderr).toBe('');
  });

  test('refuses a cursor of another list with the sentence of the API', async () => {
    const { exitCode, stderr } = await cli('runs', 'list', '--cursor', 'made-up');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('start again without a cursor');
  });

  test('fits a terminal of 100 columns', async () => {
    const { lines } = await onTerminal(100, ['runs', 'list', '--url', host.url]);
    expect(lines).toHaveLength(6);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(lines.at(-1)).toMatch(new RegExp(`^${triaged.slice(0, 12)} +succeeded +- +(now|\\d+[smh]) `));
  });
});

describe('runs show', () => {
  test('shows the run, its steps, receipts, commits and evidence', async () => {
    const { exitCode, stdout } = await cli('runs', 'show', triaged);
    const run = await host.run(triaged);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^Orders database is slow {2}succeeded\n\nautomation +triage-incident\nsubject +servicenow:/,
    );
    expect(stdout).toMatch(/^workflow +triage-incident, version 1$/m);
    expect(stdout).toMatch(/^route +transform +succeeded +- +- +\d+ ms +-$/m);
    expect(stdout).toMatch(/^note +servicenow.incident.add_work_note +succeeded +allow +1 +\d+ m?s +succeeded$/m);
    const { step, receipt } = await stepOf(triaged, 'assign');
    const [written, before] = [step.governed?.request.action.fields, receipt?.before].map((each) =>
      JSON.stringify(each?.assignment_group),
    );
    expect(written).toMatch(/^"\w+/);
    expect(stdout).toContain(`\n  wrote     assignment_group: ${written}, before ${before}\n  outcome   succeeded\n`);
    expect(stdout).toMatch(/^VALUES\nroute\n {2}output +\{.*…$/m);
    expect(stdout).toMatch(/^ {2}undo +servicenow.incident.update \{.*"assignment_group":""/m);
    expect(stdout).toMatch(/^ {2}undo +none: a work note cannot be removed/m);
    expect(stdout).toMatch(/^1 {2}\d\d:\d\d:\d\d\.\d{3} {2}accepted servicenow incident.insert for triage-incident/m);
    expect(stdout).toContain('post: write to slack:#incidents is about to start');
    expect(stdout).toContain(`sha256      ${run.evidence?.sha256}`);
    expect(stdout).toMatch(new RegExp(`\nrun +${triaged}\ncommits +${run.head.seq}\nlast hash +${run.head.hash}\n`));
    const { id, url } = run.trace;
    expect(url).toBe(`/_local/traces?trace=${id}`);
    expect(stdout).toMatch(new RegExp(`\ntrace +${id}\n +/_local/traces.trace=${id}\n$`));
    expect(stdout).not.toContain(ESCAPE);
  });

  test('shows why a run failed', async () => {
    const { exitCode, stdout } = await cli('runs', 'show', failed);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^error +TARGET_REFUSED: ServiceNow refused \(404\)/m);
    expect(stdout).toMatch(/^assign +servicenow.incident.update +failed_terminal +approval +1 /m);
    expect(stdout).toMatch(/^note +servicenow.incident.add_work_note +pending +- +- +- +-$/m);
  });

  test('prints the response of the API with --json', async () => {
    const { stdout } = await cli('runs', 'show', triaged, '--json');
    expect(JSON.parse(stdout)).toEqual(await host.run(triaged));
  });

  test('finds a run by a prefix of its id, with or without run_', async () => {
    for (const reference of [triaged.slice(0, 20), triaged.slice(4, 20)]) {
      expect((await cli('runs', 'show', reference)).stdout).toMatch(new RegExp(`^run +${triaged}$`, 'm'));
    }
  });

  test('fits a terminal of 80 columns', async () => {
    for (const runId of [triaged, failed]) {
      const { lines } = await onTerminal(80, ['runs', 'show', runId, '--url', host.url]);
      expect(lines.length).toBeGreaterThan(40);
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
    }
  });

  test('shows the values of one step in full with --step', async () => {
    const { step, receipt } = await stepOf(triaged, 'assign');
    const { stdout } = await cli('runs', 'show', triaged, '--step', 'assign');
    const inFull = (value: unknown) => JSON.stringify(value, null, 2);
    expect(stdout).toBe(
      [
        'assign: servicenow.incident.update  succeeded',
        `\nWRITTEN\n${inFull(step.governed?.request.action.fields)}`,
        `\nBEFORE\n${inFull(receipt?.before)}`,
        `\nOUTPUT\n${inFull(step.output)}`,
        `\nUNDO\n${inFull(receipt?.reversal)}`,
        '',
      ].join('\n'),
    );
    const { exitCode, stderr } = await cli('runs', 'show', triaged, '--step', 'asign');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('the run has no step "asign"; did you mean "assign"?'),
    });
  });

  test('responds to the run of another tenant as if it did not exist', async () => {
    const { exitCode, stdout, stderr } = await cli('runs', 'show', triaged, '--key', GLOBEX_KEY);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 1, stdout: '', stderr: `there is no run ${triaged}\n` });
  });
});

describe('runs watch', () => {
  test('prints all commits of an ended run and exits with 0', async () => {
    const { exitCode, stdout, stderr } = await cli('runs', 'watch', triaged);
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}accepted servicenow incident.insert/);
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/run: succeeded$/);
    expect(stderr).toMatch(/^succeeded after /);
  });

  test('follows a run across a crash of its worker', async () => {
    await host.fault({
      function: 'WorkerStep',
      service: 'dynamodb',
      operation: 'TransactWriteItems',
      kind: 'crash_before',
      // The fourth transaction settles `assign` and claims `note`; the worker dies before the next one.
      nth: 4,
    });
    const runId = await host.fileIncident(incident('followed'));
    await host.approve(runId);
    const watch = startCountersign(['runs', 'watch', runId, '--url', host.url]);
    await watch.hasPrinted('note: write to');
    expect(watch.stdout).not.toContain('post:');
    await host.letTimePassUntil([runId], ({ status }) => status === 'succeeded');
    const { exitCode, stdout } = await watch.ended;
    await host.clearFaults();
    expect(exitCode).toBe(0);
    expect(stdout).toContain('note: attempt 2 of servicenow.incident.add_work_note');
    expect(stdout).toContain('note: the write was found at the target; it was not repeated');
    expect(stdout.match(/note: succeeded/g)).toHaveLength(1);
  });

  test('exits with 1 if the run did not succeed', async () => {
    const { exitCode, stdout } = await cli('runs', 'watch', failed);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/run: failed_terminal: TARGET_REFUSED: ServiceNow refused \(404\).*\n$/);
  });

  test('prints every event as one line of JSON with --json', async () => {
    const { stdout, stderr } = await cli('runs', 'watch', triaged, '--json');
    const { commits } = await host.run(triaged);
    const expected = commits.flatMap(({ seq, at, events }) =>
      events.map((event) => ({ runId: triaged, seq, at, ...event })),
    );
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(expected);
    expect(stderr).toBe('');
  });
});

describe('runs bulk', () => {
  /** One batch has 20 runs. */
  const COUNT = 21;

  test('cancels the runs of a preview, stops after a batch, and resumes', async () => {
    const title = { short_description: 'In bulk' };
    const runIds: string[] = [];
    for (let index = 0; index < COUNT; index += 1) {
      runIds.push(await host.fileIncident(incident(`bulk ${index}`, title)));
    }
    const isWaiting = ({ status }: { status: string }) => status === 'waiting_approval';
    for (const runId of runIds) await host.waitForRun(runId, isWaiting);
    const waiting = async () => (await inParallel(runIds, 2, (runId) => host.run(runId))).filter(isWaiting).length;
    const bulk = ['runs', 'bulk', 'cancel', '--text', 'In bulk', '--reason', 'wrong rule', '--url', host.url];

    const declined = await onTerminal(100, bulk, ['n']);
    expect(declined.exitCode).toBe(1);
    expect(declined.stdout).toContain(`\ncancel ${COUNT} runs: waiting_approval ${COUNT}`);
    expect(await waiting()).toBe(COUNT);

    // Ctrl-C as soon as the command listens for it: during the first batch.
    const pressCtrlC = (event: string | symbol, listener: () => void) => {
      if (event === 'SIGINT') setImmediate(listener);
    };
    process.on('newListener', pressCtrlC);
    const stopped = await onTerminal(100, bulk, ['y']);
    process.off('newListener', pressCtrlC);
    expect(stopped.exitCode).toBe(130);
    expect(stopped.stderr).toContain(`20 of ${COUNT}: 20 changed`);
    const [, jobId = ''] = /continue with: npx countersign runs bulk resume (bulk_\w+)$/m.exec(stopped.stderr) ?? [];
    expect(await waiting()).toBe(1);

    const resumed = await cli('runs', 'bulk', 'resume', jobId);
    expect(resumed).toMatchObject({
      exitCode: 0,
      stdout: `cancel, ${jobId}: ${COUNT} of ${COUNT}: ${COUNT} changed\n`,
    });
    for (const runId of runIds) {
      expect(await host.waitForRun(runId)).toMatchObject({
        status: 'canceled',
        cancellation: { reason: 'wrong rule' },
      });
    }
  });
});

describe('approvals', () => {
  const ANA = 'local-approver-key';
  const BEN = 'local-approver2-key';

  test('a maker cannot approve; after the approval of another person the write is made', async () => {
    const runId = await host.fileIncident(incident('countersigned', { sys_updated_by: 'ana' }));
    await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const { stdout } = await cli('approvals', 'list');
    expect(stdout).toMatch(new RegExp(`^${runId}\\.2-1 .* 1 person for medium risk +servicenow.incident.update `, 'm'));
    const { body } = await host.api<Record<string, unknown>>(`/approvals/${runId}.2-1`);
    const shown = await cli('approvals', 'show', `${runId}.2-1`, '--json');
    expect(JSON.parse(shown.stdout)).toEqual(body);
    // Also by the run: with what the caller needs to decide.
    expect(body.forDecision).toMatchObject({ approvedSoFar: 0 });
    expect(JSON.parse((await cli('approvals', 'show', runId, '--json')).stdout)).toEqual(body);

    const refused = await cli('approvals', 'approve', runId, '--yes', '--key', ANA);
    expect({ exitCode: refused.exitCode, stderr: refused.stderr }).toEqual({
      exitCode: 1,
      stderr: 'you had a hand in this write, so someone else must decide on it\n',
    });
    const approved = await cli('runs', 'approve', runId, '--yes', '--key', BEN);
    expect(approved.exitCode, approved.stderr).toBe(0);
    await host.waitForRun(runId);
    const page = (await cli('runs', 'show', runId)).stdout;
    expect(page).toContain(`assign: approved, ${runId}.2-1`);
    expect(page).toMatch(/^ {2}vote +ben approved through the API, /m);
    const late = await cli('approvals', 'reject', runId, '--reason', 'too late', '--yes', '--key', BEN);
    expect(late.exitCode).toBe(1);
    expect(late.stderr).toMatch(/^the approval was approved by ben at /);
  });

  test('an operator rolls a run back', async () => {
    const filed = incident('rolled back');
    const runId = await host.fileIncident(filed);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const { exitCode, stdout } = await cli('runs', 'rollback', runId, '--reason', 'wrong incident');
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
    const { status } = await host.waitForRun(runId);
    expect(status).toBe('canceled');
    expect((await cli('approvals', 'list')).stdout).not.toContain(runId);
    expect(await cli('runs', 'rollback', runId)).toMatchObject({ exitCode: 1, stdout: '' });
  });

  test('people take, release and resolve a run that has ended', async () => {
    expect((await cli('runs', 'assign', failed)).stdout).toContain('assigned to olivia');
    const taken = await cli('runs', 'assign', failed, '--key', 'local-member-key');
    expect(taken).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('this run is assigned to olivia') });
    expect((await cli('runs', 'release', failed)).stdout).toBe(`${failed} is failed_terminal; nobody is assigned\n`);
    const unclear = await cli('runs', 'resolve', failed, '--as', 'succeded', '--reason', 'x');
    expect(unclear).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('did you mean "succeeded"?') });
    const resolve = ['runs', 'resolve', failed, '--as', 'failed', '--reason', 'the incident is gone'];
    const wrong = await cli(...resolve, '--write', 'assign=happened');
    expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('all outcomes of this run are known') });
    expect((await cli(...resolve)).stdout).toContain('failed_terminal, resolved as failed by olivia');
    expect((await cli('runs', 'show', failed)).stdout).toMatch(
      /resolved +as failed by olivia, .*: the incident is gone/,
    );
  });
});
