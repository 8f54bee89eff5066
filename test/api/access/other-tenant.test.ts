import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type HttpResponse, Problem } from '../../../lambdas/entry/http.ts';
import { may, type Right, ROLES } from '../../../lambdas/people/rights.ts';
import { NO_TENANT_POLICIES } from '../../../lambdas/policy/policy.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { Schedule } from '../../../lambdas/schedules/schedule.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { ANA, OLIVIA } from '../../approval/people.ts';
import { enrolled } from '../../contracts/agents/agent-registry-contract.ts';
import { byTest } from '../../fakes/by-test.ts';
import { MemoryAgentChanges } from '../../fakes/memory/memory-agent-changes.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryBulkJobs } from '../../fakes/memory/memory-bulk-jobs.ts';
import { BY_SETUP } from '../../fakes/memory/memory-changes.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { MemoryPlanStore } from '../../fakes/memory/memory-plan-store.ts';
import { SetupWorld } from '../../setup/setup-world.ts';
import { ASSIGN, GovernedWorkshop } from '../../worker/governance/governed-workshop.ts';
import { eventFor, keyedRoutes, type Sent } from '../every-route.ts';

/** Everything acme has is named with it, so that a response that contains it shows something of acme. */
const MARK = 'only-acme';
/** Also a name in acme, which somebody of another tenant may use for their own definitions. */
const SHARED_NAME = 'alex';
const FOREIGN = 'globex';
const PLAN_HASH = 'a'.repeat(64);
const LONG_AFTER = '2999-01-01T00:00:00.000Z';

const keys = new MemoryApiKeys();
const plans = new MemoryPlanStore();
const agents = new MemoryAgents();
const agentChanges = new MemoryAgentChanges(agents);
let shop: GovernedWorkshop;
let approval: Approval;
const setup = new SetupWorld();
/** The dead letters of acme carry the mark. */
const foundIn = (tenant: string) => ({
  queues: [{ queue: 'steps', messages: 0, complete: true }],
  letters: tenant === 'acme' ? [{ id: MARK, queue: 'steps', sentAt: '2026-01-01T00:00:00.000Z', attempts: 5 }] : [],
});

let ports: Record<string, unknown>;

beforeAll(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  ({ approval } = await shop.upToGate(ASSIGN()));
  const { definitions } = shop;
  const workflow = parseWorkflow(ASSIGN().replace('name: assign', `name: ${MARK}`), 'f');
  await definitions.publishWorkflow('acme', workflow, 1, byTest());
  const automation = {
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github' as const, event: 'issues.opened' },
    workflow: { name: MARK, version: 1 },
  };
  for (const name of [MARK, SHARED_NAME]) await definitions.saveAutomation('acme', { name, ...automation }, byTest());
  for (const name of [MARK, SHARED_NAME]) {
    await definitions.saveSource('acme', { name, enabled: true, title: MARK }, byTest());
    const session = {
      provider: 'agent' as const,
      command: '/bin/true',
      environment: 'dev' as const,
      capabilities: [MARK],
    };
    await definitions.saveConfiguration('acme', { name, session, revision: 1 }, byTest());
    const schedule = { ...Schedule.parse({ name, automation: MARK, rate: '1 hour' }), makers: [MARK] };
    const state = { tenant: 'acme', name, revision: 1, nextSlot: LONG_AFTER };
    await shop.runs.schedules.saveSchedule('acme', schedule, state, BY_SETUP, undefined);
  }
  await plans.savePlan('acme', {
    plan: { planHash: PLAN_HASH, policyHashes: [], writes: [] },
    automation: { name: MARK, workspace: 'default', workflow: { name: MARK, version: 1 } },
    trigger: { source: 'manual', event: 'run.requested', fields: {}, payload: {}, receivedAt: LONG_AFTER },
    savedBy: MARK,
    plannedAt: LONG_AFTER,
    expiresAt: LONG_AFTER,
  });
  for (const id of [MARK, SHARED_NAME]) await definitions.savePerson('acme', { ...ANA, id, identities: [] });
  await definitions.savePolicies('acme', { engine: 'cedar', files: { [`${MARK}.cedar`]: '' } }, byTest());
  for (const name of [MARK, SHARED_NAME]) {
    await keys.save(`key of ${name}`, { tenant: 'acme', person: MARK, role: 'owner', name });
  }
  const by = byTest({ actor: MARK, changeId: `chg_${MARK}` });
  const pending = {
    changeId: by.changeId,
    kind: 'person' as const,
    person: MARK,
    before: null,
    after: { ...ANA, id: MARK, identities: [] },
    widens: [],
    requestedBy: MARK,
    requestedAt: '2026-01-01T00:00:00.000Z',
    expiresAt: LONG_AFTER,
  };
  await definitions.requestChange('acme', pending, by, null);
  for (const role of ROLES) {
    await definitions.savePerson(FOREIGN, { ...OLIVIA, id: `a-${role}`, role, identities: [] });
  }
  for (const name of ['github', 'slack']) {
    await definitions.saveConnection(
      'acme',
      { name, baseUrl: `https://${MARK}.example.com`, instance: MARK },
      byTest(),
    );
  }
  await agents.create(enrolled('acme', MARK));
  const token = { tenant: 'acme', tokenId: MARK, name: MARK, environments: [], networkSegment: null, sha256: MARK };
  const created = { createdBy: MARK, createdAt: '2026-01-01T00:00:00.000Z', expiresAt: LONG_AFTER, revision: 1 };
  await agentChanges.createToken({ ...token, ...created }, byTest());
  const allow = [{ executable: `/${MARK}` }];
  await definitions.saveProfile('acme', { name: 'prod-standard', allow, deny: [] }, byTest());
  setup.documents.set('acme', 'connections', { github: { token: MARK } });
  setup.documents.set('acme', 'webhook-signing', { github: [MARK] });
  ports = {
    ...setup.ports,
    ...shop.worker,
    runs: shop.runs,
    definitions,
    schedules: shop.runs.schedules,
    plans,
    keys,
    agents,
    changes: agentChanges,
    newSecret: () => 'a secret of globex',
    ...outputPorts(shop.clock),
    newApiKey: () => `csk_${Math.random()}`,
    cursorSecret: async () => 'secret',
    store: {
      get: async () => Buffer.from(MARK),
      find: async (key: string) => (key === `texts/acme/${PLAN_HASH}` ? Buffer.from(MARK) : undefined),
    },
    texts: { keepPolicies: async () => {} },
    jobs: new MemoryBulkJobs(),
    deadLetters: {
      counts: async () => [],
      list: async (tenant: string) => foundIn(tenant),
      redrive: async (tenant: string) => foundIn(tenant),
    },
    changeLogs: {
      lastClosed: async (tenant: string) =>
        tenant === 'acme' ? { first: '2026-01-01', day: '2026-12-31', sha256: '' } : undefined,
    },
    peopleRules: { coolDownMs: 0, secondOwner: false },
    region: 'eu-central-1',
    hasTime: () => true,
    tools: [],
    engines: {
      cedar: { prepare: async () => ({ hash: 'h', ids: [], warnings: [], mentions: [], decide: () => ({}) }) },
    },
    shipped: () => ({ schema: '', files: {} }),
    policyOf: () => shop.policy,
  };
});
afterAll(() => vi.unstubAllGlobals());

/** These create or replace a thing of the caller's own tenant, so they succeed. */
const CREATES = [
  'savePerson',
  'saveAutomation',
  'saveSchedule',
  'saveSource',
  'saveConfiguration',
  'saveConnection',
  'saveWebhookSecret',
  'deletePreviousWebhookSecrets',
  // Every tenant has the same profiles.
  'getProfile',
  'saveProfile',
];

/** What names acme's things in the paths and bodies of each area. */
function sentTo(name: string, path: string): Sent {
  const id = path.includes('/approvals/')
    ? approval.approvalId
    : path.includes('/runs/') || path.includes('/executions/')
      ? approval.runId
      : path.includes('/changes/')
        ? `chg_${MARK}`
        : MARK;
  const seen = { actionHash: approval.actionHash };
  const bodies: Record<string, unknown> = {
    decideApproval: { decision: 'approve', ...seen },
    approveRun: seen,
    callMcp: {
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'get_action_result', arguments: { actionId: approval.runId } },
    },
    approveExecutionStep: { step_number: 1, approved: true, action_hash: seen.actionHash },
    rejectRun: { reason: 'no', ...seen },
    signalRun: { event: 'go' },
    rejectChange: { reason: 'no' },
    setAway: { away: null },
    setDelegates: { delegates: [] },
    resolveRun: { outcome: 'failed', reason: 'x' },
    acceptBrokenRules: { rules: [2], reason: 'x' },
    savePerson: { name: 'Somebody', role: 'member' },
    saveAutomation: {
      trigger: { source: 'github', event: 'issues.opened' },
      workflow: { name: MARK, version: 1 },
    },
    saveSchedule: { automation: SHARED_NAME, rate: '1 hour' },
    saveSource: { title: 'Alert' },
    saveConfiguration: { session: { provider: 'agent', command: '/bin/true', environment: 'dev' } },
    saveConnection: { baseUrl: 'https://api.github.com', instance: 'github.com' },
    saveWebhookSecret: { secret: 'a secret of globex' },
    simulateWorkflow: { workflow: { name: MARK }, source: 'github', payload: {} },
    publishPolicies: NO_TENANT_POLICIES,
    replayPolicies: { policies: NO_TENANT_POLICIES },
    createApiKey: { name: SHARED_NAME, person: MARK, role: 'member' },
    createEnrolmentToken: { name: SHARED_NAME, environments: ['dev'] },
    saveProfile: { deny: [] },
    publishWorkflow: 'not a workflow',
    validateWorkflow: 'not a workflow',
  };
  const names = CREATES.includes(name) ? { id: SHARED_NAME, name: SHARED_NAME } : { id, name: MARK };
  // There are only a few names of connections, so both tenants use the same.
  const connection = { name: CREATES.includes(name) ? 'github' : 'slack', source: 'github' };
  const isSetup = path.includes('/connections') || path.includes('/webhook-secrets');
  return {
    params: {
      ...names,
      ...(isSetup && connection),
      ...(path.includes('/profiles/') && { name: 'prod-standard' }),
      version: '1',
      index: '0',
      day: '2026-06-01',
      seq: '1',
      file: FILES[name] ?? '',
      job: 'bulk_0000000a',
      hash: PLAN_HASH,
    },
    body: bodies[name],
  };
}

const FILES: Record<string, string> = {
  getEvidenceFile: 'bundle.json',
  getEvidenceAddendum: 'addendum.json',
  getChangesFile: 'changes.json',
};

describe.each(keyedRoutes)('$key', ({ name, route, handle }) => {
  it.each(ROLES)('shows and changes nothing of another tenant, as %s', async (role) => {
    const before = JSON.stringify(await everythingOfAcme());
    const as = { tenant: FOREIGN, person: `a-${role}`, role };
    const outcome = await handle(ports as never, eventFor(route, as, sentTo(name, route.path))).catch((error) => error);
    const namesAcmesThing = route.path.includes('{') && !CREATES.includes(name);
    if (outcome instanceof Problem) {
      // 404 for callers who have the right in their own tenant, 403 for the others.
      if (namesAcmesThing) expect(outcome.status).toBe(may(role, route.right as Right) ? 404 : 403);
    } else {
      expect(namesAcmesThing).toBe(false);
      expect((outcome as HttpResponse).statusCode).toBeLessThan(300);
      expect((outcome as HttpResponse).body).not.toContain(MARK);
    }
    expect(JSON.stringify(await everythingOfAcme())).toBe(before);
  });
});

async function everythingOfAcme() {
  const { definitions, runs } = shop;
  return [
    await runs.load('acme', approval.runId),
    await runs.approval('acme', approval.runId, approval.approvalId),
    await definitions.people('acme'),
    await definitions.automations('acme'),
    await definitions.sources('acme'),
    await definitions.configurations('acme'),
    await runs.schedules.schedules('acme', { limit: 10 }),
    await plans.savedPlan('acme', PLAN_HASH),
    await definitions.connections('acme'),
    await definitions.settings('acme'),
    await setup.documents.read('acme', 'connections'),
    await setup.documents.read('acme', 'webhook-signing'),
    await definitions.policies('acme'),
    await definitions.newestWorkflows('acme', { limit: 10 }),
    await definitions.pendingChanges('acme', { limit: 10 }),
    await definitions.changes('acme', { limit: 100 }),
    await keys.list('acme'),
    await agents.agents('acme', { limit: 10 }),
    await agentChanges.tokens('acme'),
    await definitions.profiles('acme'),
  ];
}
