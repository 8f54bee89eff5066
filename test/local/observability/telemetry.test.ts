import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { METRICS, type MetricDefinition, OTHER } from '../../../lambdas/telemetry/metrics.ts';
import type { MetricTotal } from '../../../local/lambda/metrics.ts';
import { readAssembly } from '../../../local/template/synthesize.ts';
import { enrolledAgent, publishCommand, startCommand } from '../harness/agent-story.ts';
import { publish } from '../harness/definitions.ts';
import { incident, incidentInserted, issueOpened } from '../harness/deliveries.ts';
import { isTerminal, type ShownRun } from '../harness/host-client.ts';
import { LiveWatcher } from '../harness/live-watcher.ts';
import { saveSettings } from '../harness/settings.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const HOUR_MS = 3_600_000;
const LABEL = (labels: string[]) => ({
  tool: 'github.labels.add',
  with: { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}', labels },
});

let host: TestHost;
/** A run with an approval, and a run of an agent's command. */
let approved: ShownRun;
let commanded: ShownRun;

/** Everything that metrics count happens once. */
beforeAll(async () => {
  host = await startTestHost();
  await publishCommand(host);
  await publish(host, {
    name: 'classify',
    event: 'fork',
    steps: [{ id: 'classify', tool: 'model.invoke', with: { prompt: 'Which label?', input: 'printer', json: true } }],
  });
  await publish(host, { name: 'label', event: 'issues.pinned', steps: [{ id: 'one', ...LABEL(['one']) }] });
  await approvedRun();
  await agentRun();
  await failures();
  const watcher = await LiveWatcher.with(host);
  await watcher.ask({ action: 'subscribe' }, 'subscribed');
  const open = incident('open');
  await host.fileIncident(open);
  await host.idle();
  await host.sweep();
  watcher.close();
});
afterAll(() => host.stop());

async function approvedRun(): Promise<void> {
  const filed = incident('approved');
  const runId = await host.fileIncident(filed);
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  await host.advance(HOUR_MS);
  await host.letTimePassUntil([runId], ({ commits }) =>
    commits.some(({ events }) => events.some(({ type }) => type === 'approval.overdue')),
  );
  await host.approve(runId);
  approved = await host.waitForRun(runId);
  expect(approved.status).toBe('succeeded');
  const atMs = await host.now();
  await host.sendServicenow(incidentInserted(filed), { atMs });
}

async function agentRun(): Promise<void> {
  const agent = await enrolledAgent(host, 'one');
  const runId = await startCommand(host);
  const statement = await agent.take();
  const used = { id: 'db', source: 'vault' as const, audit_id: null, ttl_seconds: 60, revoked: true, fetch_ms: 250 };
  await agent.complete(statement, 0, { credentials_used: [used], violations: ['network'] });
  commanded = await host.waitForRun(runId);
  expect(commanded.status).toBe('succeeded');
}

async function failures(): Promise<void> {
  await host.fault({ service: 'xray', kind: 'error', code: 'InvalidRequestException', status: 400 });
  await host.ask('POST', '/_local/models', { contains: 'printer', answer: { label: 'hardware' } });
  const classified = await host.sendGithub({}, { event: 'fork' });
  // The same delivery id with another body, a wrong signature, an event that nothing waits for.
  await host.sendGithub(issueOpened(70), { deliveryId: 'delivery-1' });
  await host.sendGithub(issueOpened(71), { deliveryId: 'delivery-1' });
  await host.sendGithub(issueOpened(72), { secret: 'wrong' });
  await host.sendGithub({ action: 'deleted' }, { event: 'label' });
  await saveSettings(host, { caps: { maxRunsPerMinute: 1 } });
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'lost_answer' });
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 422 });
  const starts = [1, 2].map((number) => host.sendGithub({ ...issueOpened(number), action: 'pinned' }));
  const pinned = (await Promise.all(starts)).map(({ body }) => body.runIds[0] ?? '');
  await host.letTimePassUntil([...pinned, ...classified.body.runIds], isTerminal);
}

const metrics = async (): Promise<MetricTotal[]> =>
  (await host.ask<{ metrics: MetricTotal[] }>('GET', '/_local/metrics')).metrics;

it('every metric is recorded, with its unit and only with dimensions that its definition lists', async () => {
  const recorded = await metrics();
  const all: readonly MetricDefinition[] = Object.values(METRICS);
  // Calls of sessions have their own tests.
  const expected = all.filter(({ name }) => name !== METRICS.actionsRefused.name);
  expect(expected.filter(({ name }) => !recorded.some((each) => each.name === name)).map(({ name }) => name)).toEqual(
    [],
  );
  for (const { name, unit, dimensions } of recorded) {
    const definition = all.find((each) => each.name === name);
    expect({ name, unit }).toEqual({ name: definition?.name, unit: definition?.unit });
    expect(Object.keys(dimensions)).toEqual(Object.keys(definition?.dimensions ?? {}));
    for (const [dimension, value] of Object.entries(dimensions)) {
      expect([...(definition?.dimensions[dimension] ?? []), OTHER]).toContain(value);
    }
  }
});

/** The lines about a run, from all functions. */
const linesOf = (runId: string): Record<string, unknown>[] =>
  host.log
    .map((line) => line.slice(line.indexOf(': ') + 2))
    .filter((line) => line.startsWith('{') && line.includes(runId))
    .map((line) => JSON.parse(line))
    .filter(({ event_type }) => event_type !== undefined);

/** Events that are no transition of a run, a step or an approval, or that another line says. */
const NOT_LOGGED = [
  ...['run.requested', 'run.enriched', 'run.deadline_extended', 'policy.decided', 'write.intended', 'write.settled'],
  ...['approval.voted', 'approval.reminded'],
];

it('each transition of a run is one line, in order, and nothing else is', async () => {
  for (const run of [approved, commanded]) {
    const events = run.commits.flatMap((commit) => commit.events.map((event) => ({ ...event, at: commit.at })));
    const transitions = events.filter(({ type }) => !NOT_LOGGED.includes(type));
    const lines = linesOf(run.runId).filter(({ event_type }) => event_type !== 'idempotency.hit');
    expect(lines.map(({ event_type, timestamp }) => [event_type, timestamp])).toEqual(
      transitions.map(({ type, at }) => [type, at]),
    );
    expect(new Set(lines.map(({ tenant_id, session_id }) => `${tenant_id} ${session_id}`))).toEqual(
      new Set([`acme ${run.runId}`]),
    );
  }
});

it('a line has the fields of source 001, 6.2, where they apply', async () => {
  const command = linesOf(commanded.runId).find(({ event_type }) => event_type === 'step.succeeded');
  expect(command).toMatchObject({
    ...{ level: 'INFO', tenant_id: 'acme', step_number: 1, sandbox_profile: 'dev-flex', blast_radius: 'low' },
    worker_id: expect.stringMatching(/^acme\.one_/),
    command_hash: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  const claimed = linesOf(approved.runId).find(
    ({ event_type, step }) => event_type === 'step.claimed' && step === 'assign',
  );
  expect(claimed).toMatchObject({
    step_number: 2,
    approval_id: expect.stringContaining(approved.runId),
    blast_radius: 'low',
  });
});

it('levels: failures are errors, retries and overdue approvals are warnings, everything else is information', async () => {
  const all = host.log
    .filter((line) => line.includes('"event_type"'))
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))));
  const levelsOf = (type: string) => [
    ...new Set(all.filter((each) => each.event_type === type).map(({ level }) => level)),
  ];
  expect(levelsOf('step.failed')).toEqual(['ERROR']);
  expect(levelsOf('step.retry_scheduled')).toEqual(['WARN']);
  expect(levelsOf('approval.overdue')).toEqual(['WARN']);
  expect(levelsOf('webhook.refused')).toEqual(['WARN']);
  expect(levelsOf('step.succeeded')).toEqual(['INFO']);
  expect(levelsOf('step.output')).toEqual([]);
});

const WORDS_OF_QUERIES = /^(fields|filter|stats|sort|limit|by|as|asc|desc|and|or|count|pct|coalesce|ispresent)$/;
/** Only lines about defects have them: `log.error(…, { tenant, runId, error })`. */
const OF_OTHER_LINES = ['runId', 'tenant', 'error.name', 'message'];

it('the saved queries use fields that the log has', () => {
  const { Resources = {} } = readAssembly(inject('assemblies').local).template;
  const strings = Object.values(Resources).flatMap(({ Type, Properties }) =>
    Type === 'AWS::Logs::QueryDefinition' ? [String(Properties?.QueryString)] : [],
  );
  expect(strings).toHaveLength(4);
  const logged = new Set(linesOf('').flatMap(Object.keys));
  for (const query of strings) {
    const names = [...query.matchAll(/ as (\w+)/g)].map(([, name]) => name);
    const words = query.replaceAll(/'[^']*'/g, '').match(/@?[a-zA-Z_][\w.]*/g) ?? [];
    const used = words.filter((word) => !WORDS_OF_QUERIES.test(word) && !word.startsWith('@') && !names.includes(word));
    expect(used.filter((field) => !logged.has(field) && !OF_OTHER_LINES.includes(field))).toEqual([]);
  }
});
