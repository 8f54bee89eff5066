import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACTIONS } from '../../../lambdas/slack/card/approval-card.ts';
import { apiDefinitions, httpRoutes } from '../../../local/api-gateway/http-routes.ts';
import { Approvers, SLACK } from '../harness/approvers.ts';
import { ownPort, saveCredentials } from '../harness/credentials.ts';
import { publish } from '../harness/definitions.ts';
import { incident } from '../harness/deliveries.ts';
import { inParallel } from '../harness/eventually.ts';
import { everythingStored, rows, type Stored } from '../harness/everything-stored.ts';
import { isTerminal, type ShownRun } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** In every credential; its base64 inside `Basic …` is looked for too. */
const SECRET = 'canary-credential';
/** In every text that people write. */
const PERSONAL = 'canary-person';

const GITHUB_TOKEN = `local-${SECRET}-github`;
const PASSWORD = `${SECRET}-servicenow`;
const CREDENTIALS = {
  servicenow: { username: 'countersign', password: PASSWORD },
  github: { token: GITHUB_TOKEN },
};
const MESSAGING_CREDENTIALS = {
  slack: { botToken: `xoxb-${SECRET}-slack` },
  pagerduty: { routingKey: `${SECRET}-pagerduty`.padEnd(32, '0') },
};
/** The credentials of this host, in every form in which they are sent. */
const SECRETS = [
  SECRET,
  Buffer.from(`countersign:${PASSWORD}`).toString('base64'),
  'local-github-secret',
  'local-servicenow-secret',
  'local-slack-signing-secret',
  'local-owner-key',
  'local-approver-key',
];

const SLA_MS = 31 * 60_000;
const HIDDEN_MS = 181_000;
const DELIVERIES_MAX = 5;
const ISSUE = { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}' };

let host: TestHost;
let people: Approvers;
/** The runs, and everything that is stored or shown after all of them. */
const runs: Record<string, ShownRun> = {};
let approvalId: string;
let stored: Stored[];
let shown: Stored[];

beforeAll(async () => {
  host = await startTestHost();
  people = new Approvers(host);
  await saveCredentials(host, JSON.stringify({ ...CREDENTIALS, http: ownPort(host, `Bearer ${SECRET}-http`) }));
  await saveCredentials(host, JSON.stringify(MESSAGING_CREDENTIALS), 'Messaging');
  await publishStories();
  await approvedAndRejected();
  await refusedAndEchoed();
  await misconfiguredAndDead();
  stored = await everythingStored(host);
  shown = await everythingShown();
});
afterAll(() => host.stop());

async function publishStories(): Promise<void> {
  const label = { id: 'label', tool: 'github.labels.add', with: { ...ISSUE, labels: ['{% trigger.title %}'] } };
  await publish(host, { name: 'label', event: 'issues.labeled', steps: [label] });
  const url = `${host.url}/_sim/github/repos/octo-org/payments/labels`;
  await publish(host, { name: 'ask', event: 'watch', steps: [{ id: 'ask', tool: 'http.get', with: { url } }] });
  const number = { ...ISSUE, number: '{% $number(trigger.title) %}' };
  const breaks = { id: 'breaks', tool: 'github.labels.add', with: { ...number, labels: ['a'] } };
  await publish(host, { name: 'breaks', event: 'issues.edited', steps: [breaks] });
  const fields = '{% trigger.payload.issue.fields %}';
  const sysId = 'a'.repeat(32);
  const invalid = { id: 'invalid', tool: 'servicenow.incident.update', with: { sysId, fields } };
  await publish(host, { name: 'invalid', event: 'issues.edited', steps: [invalid] });
  // A filter that fails on a text starts no run, and the log says so.
  await host.request('PUT', '/api/v1/automations/filtered', {
    headers: { 'x-api-key': 'local-owner-key' },
    body: JSON.stringify({
      trigger: { source: 'github', event: 'issues.edited', filter: '{% $number(trigger.title) > 1 %}' },
      workflow: { name: 'breaks', version: 1 },
    }),
  });
}

const issue = (action: string, number: number) => ({
  action,
  issue: {
    number,
    title: `${PERSONAL} ${number} broke my laptop`.slice(0, 50),
    body: `${PERSONAL}: my number is 555-0100`,
    user: { login: 'mona' },
    fields: { [`${PERSONAL}-key`]: `${PERSONAL}-value`, assignment_group: {} },
  },
  repository: { name: 'payments', full_name: 'octo-org/payments' },
  sender: { login: 'mona' },
});

async function finished(story: string, runId: string, status: string): Promise<void> {
  const [run] = await host.letTimePassUntil([runId], (each) => isTerminal(each) && each.evidence !== null);
  if (run?.status !== status) throw new Error(`${story}: ${JSON.stringify(run, null, 1)}`);
  runs[story] = run;
}

const filed = (name: string) =>
  incident(name, {
    short_description: `${PERSONAL} is locked out, ${name}`,
    description: `${PERSONAL}, born in 1970`,
    sys_updated_by: 'ana',
  });

/** Card, ephemeral response, list, reminder, escalation, approval; and a rejection with a reason. */
async function approvedAndRejected(): Promise<void> {
  const refused = filed('rejected');
  // The values before the write cannot be read: the response has another shape and other names.
  const body = { result: { [`${PERSONAL}-key`]: 1, assignment_group: GITHUB_TOKEN } };
  await host.simulatedFault({ system: 'servicenow', method: 'GET', path: refused.sysId, kind: 'other_body', body });
  const [accepted, rejected] = [await host.fileIncident(filed('approved')), await host.fileIncident(refused)];
  const [wanted, unwanted] = [await people.waiting(accepted), await people.waiting(rejected)];
  approvalId = wanted.approvalId;
  await people.click(SLACK.ana, wanted, ACTIONS.approve);
  await people.type(SLACK.ben, '/countersign pending');
  await host.idle();
  await host.advance(SLA_MS);
  await host.idle();
  await people.click(SLACK.ben, wanted, ACTIONS.approve);
  await people.decide(unwanted, { decision: 'reject', reason: `${PERSONAL} says no` }, 'local-approver2-key');
  await finished('approved', accepted, 'succeeded');
  await finished('rejected', rejected, 'failed_terminal');
}

/** Targets that repeat the request in errors and responses, and texts that cause errors. */
async function refusedAndEchoed(): Promise<void> {
  const said = `${PERSONAL} may not, with ${GITHUB_TOKEN}`;
  const at = (number: number) => ({ system: 'github', method: 'POST', path: `/issues/${number}/labels` });
  await host.simulatedFault({ ...at(71), kind: 'status', status: 422, body: { message: said } });
  await host.simulatedFault({ ...at(72), kind: 'other_body', body: [{ name: GITHUB_TOKEN }, { name: `${PERSONAL}` }] });
  const echo = { authorization: `Bearer ${SECRET}-http`, name: PERSONAL };
  await host.simulatedFault({
    system: 'github',
    method: 'GET',
    path: '/payments/labels',
    kind: 'other_body',
    body: echo,
  });
  const start = async (payload: object, event?: string) =>
    (await host.sendGithub(payload, event === undefined ? {} : { event })).body.runIds;
  const [refused = ''] = await start(issue('labeled', 71));
  const [echoed = ''] = await start(issue('labeled', 72));
  const [asked = ''] = await start({}, 'watch');
  const broken = await start(issue('edited', 73));
  await finished('refused', refused, 'failed_terminal');
  await finished('echoed', echoed, 'succeeded');
  await finished('asked', asked, 'succeeded');
  for (const runId of broken) await finished((await host.run(runId)).automation, runId, 'failed_terminal');
}

/** Somebody pastes a bare token over the secret; then the table cannot be read, and a message ends as a dead letter. */
async function misconfiguredAndDead(): Promise<void> {
  await saveCredentials(host, GITHUB_TOKEN);
  const [runId = ''] = (await host.sendGithub(issue('labeled', 74))).body.runIds;
  await finished('misconfigured', runId, 'failed_terminal');
  // Not one that the SDK would try again by itself.
  const broken = { kind: 'error', code: 'ValidationException', status: 400, times: 'always' } as const;
  await host.fault({ ...broken, function: 'WorkerStep', service: 'dynamodb' });
  await host.sendGithub(issue('labeled', 75));
  for (let delivery = 0; delivery <= DELIVERIES_MAX; delivery += 1) {
    await host.idle();
    await host.advance(HIDDEN_MS);
  }
  await host.idle();
}

/** What people and other systems see: API, Slack, simulators. */
async function everythingShown(): Promise<Stored[]> {
  const paths = [
    '/runs?limit=100',
    '/approvals',
    '/dead-letters',
    '/workflows',
    '/automations',
    '/policies',
    ...Object.values(runs).flatMap(({ runId }) => [
      `/runs/${runId}`,
      `/runs/${runId}/events`,
      `/runs/${runId}/evidence`,
      `/runs/${runId}/evidence/bundle.json`,
    ]),
  ];
  const shown: Stored[] = [];
  for (const path of paths) shown.push({ where: `GET ${path}`, text: (await host.api(path)).text });
  for (const path of ['/_sim/state', '/_sim/calls']) {
    shown.push({ where: `GET ${path}`, text: (await host.request('GET', path)).text });
  }
  return shown;
}

const holding = (places: readonly Stored[], canaries: readonly string[]) =>
  places
    .filter(({ text }) => canaries.some((canary) => text.includes(canary)))
    .map(({ where, text }) => `${where}: ${text}`);

const at = (places: readonly Stored[], ...starts: string[]) =>
  places.filter(({ where }) => starts.some((start) => where.startsWith(start)));

it('the canaries are in the data', () => {
  expect(Object.keys(runs).sort()).toEqual([
    'approved',
    'asked',
    'breaks',
    'echoed',
    'invalid',
    'misconfigured',
    'refused',
    'rejected',
  ]);
  for (const start of ['row RUN#', 'row RECEIPT#', 'object artifacts/']) {
    expect(holding(at(stored, start), [PERSONAL])).not.toEqual([]);
  }
  for (const start of ['object evidence/', 'object siem/', 'object artifacts/', 'dead letter', 'execution', 'log']) {
    expect(at(stored, start), start).not.toEqual([]);
  }
  expect(holding(at(shown, 'GET /_sim/state'), [PERSONAL])).not.toEqual([]);
});

describe('no credential is found', () => {
  it('in any row, object, dead letter, execution or log line', () => {
    expect(holding(stored, SECRETS)).toEqual([]);
  });

  it('in any response, card, message or call', () => {
    expect(holding(shown, SECRETS)).toEqual([]);
  });
});

describe('what people wrote is found', () => {
  it('in no bundle, SIEM line, dead letter, execution or log line', () => {
    const metadataOnly = at(
      stored,
      'object evidence/',
      'object siem/',
      'object log/',
      'dead letter',
      'execution',
      'log',
    );
    expect(holding(metadataOnly, [PERSONAL])).toEqual([]);
  });

  it('in no error of a run or a step', () => {
    const errors = Object.entries(runs).map(([where, run]) => ({
      where,
      text: JSON.stringify([run.error, run.steps.map((step) => ('error' in step ? step.error : null))]),
    }));
    expect(errors.filter(({ text }) => text.includes('code'))).toHaveLength(5);
    expect(holding(errors, [PERSONAL])).toEqual([]);
  });
});

describe('another tenant, at every route that needs a key', () => {
  /** A valid body for each route, so that the tenant decides and not the body. */
  const BODIES: Record<string, object> = {
    'POST /api/v1/approvals/{id}/decision': { decision: 'approve', actionHash: 'any' },
    'POST /api/v1/runs/{id}/approve': { actionHash: 'any' },
    'POST /api/v1/runs/{id}/reject': { reason: 'not yours', actionHash: 'any' },
    'POST /api/v1/runs/{id}/signal': { event: 'go' },
    'POST /api/v1/runs/{id}/resolve': { outcome: 'failed', reason: 'not yours' },
    'POST /api/v1/runs/{id}/accept-broken-rules': { rules: [1], reason: 'not yours' },
    'PUT /api/v1/people/{id}/away': { away: null },
    'PUT /api/v1/policies': { engine: 'cedar', files: {} },
    'POST /api/v1/policies/replay': { policies: { engine: 'cedar', files: {} } },
  };
  const fileOf = (of: string) =>
    `${of.startsWith('addenda') ? 'addendum' : of === 'evidence' ? 'bundle' : 'changes'}.json`;
  const ask = async (key: string, named: Record<string, string>) => {
    const routes = apiDefinitions(host.stack).flatMap(httpRoutes);
    const keyed = routes.filter(({ authorizerId }) => authorizerId !== undefined);
    // One after the other: at once, they would start up to four threads of each function.
    return inParallel(keyed, 1, async ({ routeKey: route }) => {
      const [method = '', path = ''] = route.split(' ');
      const kind = path.split('/')[3] ?? '';
      const place = path
        .replace('{id}', named[kind] ?? '')
        .replace('{name}', kind === 'profiles' ? 'prod-critical' : 'label')
        .replace('{version}', '1')
        .replace('{hash}', 'a'.repeat(64))
        .replace('{day}', '2026-01-01')
        .replace(/(evidence|addenda\/[^/]*|days\/[^/]*)\/\{file\}/, (_, of: string) => `${of}/${fileOf(of)}`);
      const body = method === 'GET' ? undefined : JSON.stringify(BODIES[route] ?? {});
      return { route, ...(await host.request(method, place, { headers: { 'x-api-key': key }, body })) };
    });
  };

  it('finds nothing of ours, and nothing of ours is changed', async () => {
    const named = { runs: runs.approved?.runId ?? '', approvals: approvalId, people: 'ana' };
    const before = await rowsOf('acme');
    const answers = await ask('local-globex-owner-key', named);
    expect(answers.length).toBeGreaterThan(30);
    // Every tenant has a profile of each name.
    const ofOne = answers.filter(({ route }) => /^(?!PUT |GET \/api\/v1\/profiles\/).*\{/.test(route));
    expect(ofOne.filter(({ status }) => status !== 404)).toEqual([]);
    const ours = [PERSONAL, named.runs, named.approvals, 'Ana Ortiz'];
    const details = answers.map(({ route, text }) => ({
      where: route,
      text: withoutQuestion(text, Object.values(named)),
    }));
    expect(holding(details, ours)).toEqual([]);
    expect(await rowsOf('acme')).toEqual(before);
  });
});

/** A response may repeat the request. */
const withoutQuestion = (text: string, asked: readonly string[]) =>
  text.includes('"NOT_FOUND"') ? asked.reduce((rest, word) => rest.replaceAll(word, ''), text) : text;

const rowsOf = async (tenant: string) =>
  (await rows(host))
    // The sweeper writes what it found whenever it sweeps.
    .filter(({ where }) => where.includes(`#${tenant}`) && !where.includes('SWEEP#'))
    .map(({ where, text }) => `${where}: ${text}`)
    .sort();
