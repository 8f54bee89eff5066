import { beforeEach, describe, expect, it } from 'vitest';
import { handlePolicies } from '../../lambdas/api/policies/policies.ts';
import { toolNames } from '../../lambdas/connectors/registry.ts';
import { type HttpEvent, Problem } from '../../lambdas/entry/http.ts';
import { textKey } from '../../lambdas/evidence/named-texts.ts';
import { TextArchive } from '../../lambdas/pipeline/text-archive.ts';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import { FailClosedPolicy } from '../../lambdas/policy/fail-closed-policy.ts';
import { OpaPolicies } from '../../lambdas/policy/opa-policies.ts';
import { NO_TENANT_POLICIES, type PolicyDecision, type TenantPolicies } from '../../lambdas/policy/policy.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { prepareStored } from '../../lambdas/policy/stored-policies.ts';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import type { Run } from '../../lambdas/run/run.ts';
import type { LoadedRun } from '../../lambdas/run/run-store.ts';
import { OLIVIA } from '../approval/people.ts';
import { byTest } from '../fakes/by-test.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { compiledRego } from '../policy/rego.ts';
import { aRequest } from '../policy/requests.ts';
import { type Asking, askAbout } from './definitions/ask-definitions.ts';

const shipped = readShippedPolicies();
const engines = {
  cedar: new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped),
  rego: new OpaPolicies(),
};
const policyOf = (policies: TenantPolicies) =>
  new FailClosedPolicy({
    tenantPolicies: async () => policies,
    engines,
    isTool: () => true,
    now: () => 0,
    stopwatch: { nowMs: () => 0, after: () => () => {} },
    log: new MemoryLog(),
  });

let definitions: MemoryDefinitions;
/** Newest first, as the store lists them. */
let stored: { tenant: string; runId: string; createdAt: string; decisions: PolicyDecision[] }[];
beforeEach(() => {
  definitions = new MemoryDefinitions();
  stored = [];
});

const runs = {
  async listRuns(tenant: string, { limit, after }: { limit: number; after?: string }) {
    const all = stored.filter((run) => run.tenant === tenant);
    const start = after === undefined ? 0 : all.findIndex(({ runId }) => runId === after) + 1;
    const items = all.slice(start, start + limit) as unknown as Run[];
    return { items, places: new Map(), ...(start + limit < all.length && { next: items.at(-1)?.runId }) };
  },
  async load(tenant: string, runId: string) {
    const run = stored.find((each) => each.tenant === tenant && each.runId === runId);
    const steps = run?.decisions.map((decision, index) => ({
      id: `step_${index}`,
      governed: { request: aRequest(), decision },
    }));
    return { steps: [{ id: 'waits' }, ...(steps ?? [])] } as unknown as LoadedRun;
  },
};

const DENIED: PolicyDecision = { verdict: 'deny', code: 'POLICY_DENIED', policyHash: 'h', policies: [], reasons: [] };
const ALLOWED: PolicyDecision = { verdict: 'allow', policyHash: 'h', policies: [], reasons: [] };
const FREEZE = {
  engine: 'cedar',
  files: { 'freeze.cedar': '@id("freeze") @reason("frozen") forbid (principal, action, resource);' },
};

let refuseTexts = false;
beforeEach(() => {
  refuseTexts = false;
});
const texts = new MemoryEvidenceStore(async (_name, run) => {
  if (refuseTexts) throw new Error('S3 is down');
  return run();
});
const ids = new CountingIds();
const clock = new FakeClock();

interface As {
  role?: string;
  tenant?: string;
  person?: string;
  machine?: boolean;
  secondOwner?: boolean;
}

async function ask(route: string, body?: unknown, as: As = {}) {
  const { role = 'owner', tenant = 'acme', person = 'olivia', machine, secondOwner = false } = as;
  const event = {
    routeKey: route,
    rawPath: route,
    body: body === undefined ? undefined : JSON.stringify(body),
    requestContext: { authorizer: { lambda: { tenant, person, role, ...(machine && { machine }) } } },
  } as unknown as HttpEvent;
  const api = {
    runs,
    definitions,
    engines,
    tools: toolNames(),
    shipped: () => shipped,
    texts: new TextArchive({ store: texts, definitions, shipped: () => shipped, log: new MemoryLog() }),
    policyOf,
    cursorSecret: async () => 'secret',
    clock,
    ids,
    secondOwner,
  };
  clock.advance(1000);
  try {
    const { statusCode, body: answered } = await handlePolicies(api, event);
    return { status: statusCode, body: JSON.parse(answered ?? '') };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { status: error.status, body: { code: error.code, detail: error.message } };
  }
}
const SHOW = 'GET /api/v1/policies';
const PUBLISH = 'PUT /api/v1/policies';
const REPLAY = 'POST /api/v1/policies/replay';
const TEST = 'POST /api/v1/policies/test';

const aForbid = (resource: string, when = 'true') => ({
  engine: 'cedar',
  files: { 'mine.cedar': `forbid (principal, action, ${resource}) when { ${when} };` },
});

describe('testing', () => {
  const cases = [
    '- { name: frozen, request: { tool: github.labels.add }, expect: { verdict: deny, policies: [freeze] } }',
    '- { name: thawed, request: { tool: github.labels.add }, expect: allow }',
  ].join('\n');

  it('decides on each case with the given policies, and puts nothing in force', async () => {
    const before = (await ask(SHOW)).body.hash;
    const { status, body } = await ask(TEST, { policies: FREEZE, cases }, { role: 'member' });
    expect({ status, policies: body.policies }).toMatchObject({
      status: 200,
      policies: expect.arrayContaining(['freeze']),
    });
    expect(body.cases).toMatchObject([
      { name: 'frozen', decision: { verdict: 'deny', reasons: ['frozen'] }, wrong: [] },
      { name: 'thawed', decision: { verdict: 'deny' }, wrong: ['expected allow'] },
    ]);
    expect((await ask(SHOW)).body.hash).toBe(before);
  });

  it.each([
    ['- { name: [', 'the cases are not YAML: line 1'],
    ['- { name: frozen, request: { tool: github.labels.add } }', 'expect'],
    ['', 'must not be empty'],
  ])('says what is wrong with cases: %s', async (text, expected) => {
    const { status, body } = await ask(TEST, { policies: FREEZE, cases: text });
    expect({ status, detail: body.detail }).toEqual({ status: 400, detail: expect.stringContaining(expected) });
  });
});

describe('publishing', () => {
  it('puts the set in force, and shows it with its hash', async () => {
    const before = (await ask(SHOW)).body;
    expect(before).toMatchObject({ engine: 'cedar', files: {}, shipped: { files: shipped.files } });
    const { status, body } = await ask(PUBLISH, FREEZE);
    expect({ status, hash: body.hash === before.hash }).toEqual({ status: 200, hash: false });
    expect((await ask(SHOW)).body).toMatchObject({ hash: body.hash, ...FREEZE });
    expect(await policyOf(await definitions.policies('acme')).decide(aRequest())).toMatchObject({
      verdict: 'deny',
      policies: ['freeze'],
      policyHash: body.hash,
    });
    expect((await ask(SHOW, undefined, { tenant: 'globex' })).body.hash).toBe(before.hash);
  });

  it('stores the text of the set, and of the one that it replaces, under its hash', async () => {
    const before = (await ask(SHOW)).body.hash;
    const { hash } = (await ask(PUBLISH, FREEZE)).body;
    const rego = (await ask(PUBLISH, compiledRego('decision'))).body.hash;
    for (const each of [before, hash, rego]) expect(sha256Hex(await texts.get(textKey('acme', each)))).toBe(each);
    const { wasm } = JSON.parse((await texts.get(textKey('acme', rego))).toString());
    expect(sha256Hex(await texts.get(textKey('acme', wasm)))).toBe(wasm);
    const again = await prepareStored(hash, (each) => texts.peek(textKey('acme', each)));
    expect(await again?.decide(aRequest())).toMatchObject({ verdict: 'deny', policies: ['freeze'], policyHash: hash });
    expect((await prepareStored(rego, (each) => texts.peek(textKey('acme', each))))?.hash).toBe(rego);
    await expect(prepareStored(hash, () => Buffer.from('{}'))).rejects.toThrow('was changed');
  });

  it('is refused while the text cannot be stored', async () => {
    const before = await definitions.policies('acme');
    refuseTexts = true;
    await expect(ask(PUBLISH, aForbid('resource in Connector::"github"'))).rejects.toThrow('S3 is down');
    expect(await definitions.policies('acme')).toEqual(before);
  });

  it('returns the policies now and before', async () => {
    expect((await ask(PUBLISH, FREEZE)).body).toMatchObject({ policies: ['freeze'], replaced: { policies: [] } });
    const again = (await ask(PUBLISH, aForbid('resource in Connector::"servicenow"'))).body;
    expect(again).toMatchObject({ policies: ['mine.cedar:1'], replaced: { policies: ['freeze'] } });
    expect(again.hash).not.toBe(again.replaced.hash);
  });

  it('accepts a Rego policy too', async () => {
    const { status, body } = await ask(PUBLISH, compiledRego('decision'));
    expect(status).toBe(200);
    expect((await ask(SHOW)).body).toMatchObject({ engine: 'rego', hash: body.hash });
  });

  it.each([
    ['a mistake in it', { engine: 'cedar', files: { 'mine.cedar': '\npermit (principal' } }, 422, 'mine.cedar:2'],
    [
      'a policy that never applies',
      {
        engine: 'cedar',
        files: { 'mine.cedar': 'forbid (principal, action, resource) when { principal is Connector };' },
      },
      422,
      'mine.cedar:1',
    ],
    [
      'a policy that fails on a plain request',
      {
        engine: 'cedar',
        files: {
          'mine.cedar':
            'forbid (principal, action, resource) when { 9223372036854775807 + context.workflow.version > 0 };',
        },
      },
      422,
      'cannot decide a low-risk read',
    ],
    [
      'a tool that is none',
      aForbid('resource == Operation::"servicenow.incident.updat"'),
      422,
      'mine.cedar:1: unknown tool',
    ],
    [
      'a tool that is none among others',
      aForbid('resource', 'resource in [Operation::"slack.message.post", Operation::"slack.post"]'),
      422,
      'unknown tool "slack.post"; known: slack.message.post',
    ],
    ['a connector that is none', aForbid('resource in Connector::"ServiceNow"'), 422, 'did you mean "servicenow"?'],
    [
      'a file without a policy',
      { engine: 'cedar', files: { 'mine.cedar': '// soon\n' } },
      422,
      'mine.cedar: contains no policy',
    ],
    ['a name that is none', { engine: 'cedar', files: { '../mine.cedar': '' } }, 400, 'change-freeze.cedar'],
    ['more than a row can hold', { engine: 'cedar', files: { 'mine.cedar': '/'.repeat(310_000) } }, 400, 'at most'],
    ['no engine', { files: {} }, 400, 'engine'],
    ['a module that is none', { engine: 'rego', wasmGzipBase64: 'AAAA' }, 422, 'must be gzip'],
  ])('refuses %s and changes nothing', async (_, policies, status, said) => {
    const answer = await ask(PUBLISH, policies);
    expect(answer).toMatchObject({ status, body: { detail: expect.stringContaining(said) } });
    expect(await definitions.policies('acme')).toEqual(NO_TENANT_POLICIES);
  });

  it.each(['operator', 'approver', 'member', 'auditor'])('is not for a %s', async (role) => {
    expect((await ask(PUBLISH, FREEZE, { role })).status).toBe(403);
    expect(await definitions.policies('acme')).toEqual(NO_TENANT_POLICIES);
  });
});

describe('in a prod stage', () => {
  const PROD = { secondOwner: true };
  const TWO = `${FREEZE.files['freeze.cedar']} @id("more") forbid (principal, action, resource in Connector::"slack");`;
  const ALLOW = { engine: 'cedar', files: { 'mine.cedar': '@id("all") permit (principal, action, resource);' } };
  const OTTO = { ...OLIVIA, id: 'otto', identities: [] };
  const asOtto = { person: 'otto', role: 'owner' };
  const CONFIRM = 'POST /api/v1/changes/pending/{id}/confirm';
  const REJECT = 'POST /api/v1/changes/pending/{id}/reject';
  const decide = (route: string, asking: Asking = {}) => {
    clock.advance(1000);
    return askAbout(definitions, route, { clock, ...asking });
  };
  const published = () => definitions.policies('acme');
  const requested = async (policies: unknown): Promise<string> => {
    const { status, body } = await ask(PUBLISH, policies, PROD);
    expect([status, body.next]).toEqual([202, expect.stringContaining(body.pending.changeId)]);
    return body.pending.changeId;
  };
  const history = async () => {
    const { items } = await definitions.changes('acme', { limit: 9 }, { kind: 'policies' });
    return items.map(({ actor, action, requestedBy }) => [actor, action, requestedBy]);
  };
  beforeEach(async () => {
    for (const person of [OLIVIA, OTTO]) await definitions.savePerson('acme', person);
  });

  it('policies that only add forbids apply at once, also without a second owner', async () => {
    await definitions.deletePerson('acme', OTTO, byTest());
    expect((await ask(PUBLISH, FREEZE, PROD)).status).toBe(200);
    expect((await ask(PUBLISH, { engine: 'cedar', files: { 'all.cedar': `// Two.\n${TWO}` } }, PROD)).status).toBe(200);
    expect((await ask(PUBLISH, { engine: 'cedar', files: { 'all.cedar': TWO } }, PROD)).status).toBe(200);
  });

  it('others wait for an independent second owner, with an entry in the history for each step', async () => {
    await ask(PUBLISH, FREEZE, PROD);
    const id = await requested(ALLOW);
    expect(await published()).toEqual(FREEZE);
    const { body } = await decide('GET /api/v1/changes/pending');
    expect(body.pending).toMatchObject([
      { changeId: id, kind: 'policies', after: ALLOW, widens: ['removes the forbid freeze', 'adds the permit all'] },
    ]);
    for (const person of ['olivia', 'nobody']) {
      const own = decide(CONFIRM, { id, as: { person, role: 'owner' } });
      await expect(own).rejects.toMatchObject({ status: 403 });
    }
    const admin = { person: 'otto', role: 'admin' };
    await expect(decide(CONFIRM, { id, as: admin })).rejects.toMatchObject({ status: 403 });
    const confirmed = await decide(CONFIRM, { id, as: asOtto });
    expect(confirmed).toEqual({ status: 200, body: { confirmed: id, kind: 'policies' } });
    expect(await published()).toEqual(ALLOW);
    await expect(decide(CONFIRM, { id, as: asOtto })).rejects.toMatchObject({ status: 404 });
    expect(await history()).toEqual([
      ['otto', 'confirmed', 'olivia'],
      ['olivia', 'requested', undefined],
      ['olivia', 'created', undefined],
    ]);
  });

  it('a forbid that was published meanwhile is not lost', async () => {
    const id = await requested(ALLOW);
    await ask(PUBLISH, FREEZE, PROD);
    await expect(decide(CONFIRM, { id, as: asOtto })).rejects.toMatchObject({ status: 409 });
    expect(await published()).toEqual(FREEZE);
    const body = { reason: 'outdated' };
    expect((await decide(REJECT, { id, body, as: asOtto })).body).toEqual({ rejected: id });
    expect((await history())[0]).toEqual(['otto', 'rejected', 'olivia']);
  });

  it('a request that finds other policies than it was compared with is refused', async () => {
    const before = definitions.policies.bind(definitions);
    definitions.policies = async (tenant) => {
      const found = await before(tenant);
      definitions.policies = before;
      await ask(PUBLISH, FREEZE, PROD);
      return found;
    };
    expect(await ask(PUBLISH, NO_TENANT_POLICIES, PROD)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
    expect(await published()).toEqual(FREEZE);
  });

  it('a machine cannot request them, and one owner alone cannot either', async () => {
    const machine = { ...PROD, person: 'ci', machine: true };
    expect((await ask(PUBLISH, ALLOW, machine)).body.detail).toMatch(/only a person may loosen policies/);
    expect((await ask(PUBLISH, FREEZE, machine)).status).toBe(200);
    await definitions.deletePerson('acme', OTTO, byTest());
    expect((await ask(PUBLISH, ALLOW, PROD)).body).toMatchObject({
      code: 'POLICY_INVALID',
      detail: expect.stringMatching(/loosens the policies \(.*adds the permit all\).*second owner/),
    });
  });

  it('nobody needs a second owner outside prod', async () => {
    expect((await ask(PUBLISH, FREEZE)).status).toBe(200);
    expect((await ask(PUBLISH, ALLOW)).status).toBe(200);
  });
});

describe('a replay over recorded decisions', () => {
  const record = (count: number, decision: PolicyDecision, tenant = 'acme') => {
    for (let n = count; n > 0; n -= 1) {
      const createdAt = `2026-01-${String(n).padStart(2, '0')}T00:00:00.000Z`;
      stored.push({ tenant, runId: `run_${tenant}_${n}`, createdAt, decisions: [decision, ALLOWED] });
    }
  };

  async function replayAll(body: object) {
    const all = { examined: 0, flips: [] as { runId: string }[], pages: 0 };
    let cursor: string | null = null;
    do {
      const { status, body: page } = await ask(
        REPLAY,
        { ...body, ...(cursor !== null && { cursor }) },
        { role: 'auditor' },
      );
      expect(status).toBe(200);
      all.examined += page.examined;
      all.flips.push(...page.flips);
      all.pages += 1;
      cursor = page.nextCursor;
    } while (cursor !== null);
    return all;
  }

  it('goes page by page over every run of the tenant, newest first', async () => {
    record(25, DENIED);
    record(3, DENIED, 'globex');
    const { examined, flips, pages } = await replayAll({ policies: NO_TENANT_POLICIES });
    expect({ examined, flips: flips.length, pages }).toEqual({ examined: 50, flips: 25, pages: 3 });
    expect(flips[0]).toEqual({
      runId: 'run_acme_25',
      step: 'step_0',
      tool: 'servicenow.incident.update',
      target: 'servicenow:acme:incident:9d38',
      from: { verdict: 'deny' },
      to: { verdict: 'allow' },
      loosens: true,
      reasons: ['a low-risk write needs no approval'],
    });
  });

  it('stops at the given time', async () => {
    record(25, DENIED);
    const { examined, pages } = await replayAll({ policies: NO_TENANT_POLICIES, since: '2026-01-20T00:00:00.000Z' });
    expect({ examined, pages }).toEqual({ examined: 12, pages: 1 });
  });

  it('changes nothing', async () => {
    record(1, ALLOWED);
    const { flips } = await replayAll({ policies: FREEZE });
    expect(flips).toHaveLength(2);
    expect(await definitions.policies('acme')).toEqual(NO_TENANT_POLICIES);
  });

  it('refuses policies that are invalid, a cursor of another tenant, and people who may not', async () => {
    record(11, DENIED);
    const broken = { engine: 'cedar', files: { 'mine.cedar': 'permit' } };
    expect(await ask(REPLAY, { policies: broken })).toMatchObject({ status: 422, body: { code: 'POLICY_INVALID' } });
    const { nextCursor: cursor } = (await ask(REPLAY, { policies: FREEZE })).body;
    const stolen = await ask(REPLAY, { policies: FREEZE, cursor }, { tenant: 'globex' });
    expect(stolen).toMatchObject({ status: 400, body: { code: 'BAD_CURSOR' } });
    expect((await ask(REPLAY, { policies: FREEZE }, { role: 'operator' })).status).toBe(403);
  });
});
