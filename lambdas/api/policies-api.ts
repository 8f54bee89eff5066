import * as z from 'zod';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { checkPolicies } from '../policy/check-policies.ts';
import type { PolicyEngines } from '../policy/engine.ts';
import type { Policy, TenantPolicies } from '../policy/policy.ts';
import { type RecordedDecision, replay } from '../policy/replay.ts';
import type { ShippedPolicies } from '../policy/shipped-policies.ts';
import type { Run } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { Caller } from './api-keys.ts';
import { callerOf } from './caller.ts';
import { openCursor, sealCursor } from './cursor.ts';
import { assertMayDefine } from './may-define.ts';
import { parseBody } from './request.ts';

/** They are kept in one row, of which DynamoDB takes 400 KB. */
const POLICIES_MAX_BYTES = 300 * 1024;
/** Runs replayed per request: even runs of hundreds of steps are decided well within the function's time. */
const REPLAYED_RUNS = 10;

const MAY_REPLAY: readonly Caller['role'][] = ['owner', 'admin', 'auditor'];

const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,58}\.cedar$/;
const Policies = z
  .discriminatedUnion('engine', [
    z.strictObject({
      engine: z.literal('cedar'),
      files: z
        .record(z.string(), z.string())
        .refine(
          (files) => Object.keys(files).every((name) => FILE_NAME.test(name)),
          'name files like change-freeze.cedar',
        ),
    }),
    z.strictObject({ engine: z.literal('rego'), wasmGzipBase64: z.base64() }),
  ])
  .refine(
    (policies) => Buffer.byteLength(JSON.stringify(policies)) <= POLICIES_MAX_BYTES,
    `policies have at most ${POLICIES_MAX_BYTES} bytes in all`,
  );
const Replay = z.strictObject({
  policies: Policies,
  since: z.iso.datetime().optional(),
  cursor: z.string().optional(),
});

export interface PoliciesApi {
  runs: Pick<RunStore, 'listRuns' | 'load'>;
  definitions: Pick<Definitions, 'policies' | 'savePolicies'>;
  engines: PolicyEngines;
  shipped: () => ShippedPolicies;
  /** The policy of a tenant that had published these. */
  policyOf(policies: TenantPolicies): Policy;
  cursorSecret: () => Promise<string>;
}

/** What decides about a tenant's writes: shown, published, and tried on what was decided before. */
export function answerPolicies(api: PoliciesApi, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  switch (event.routeKey) {
    case 'GET /api/v1/policies':
      return show(api, caller);
    case 'PUT /api/v1/policies':
      return publish(api, caller, event);
    case 'POST /api/v1/policies/replay':
      return replayRuns(api, caller, event);
    default:
      throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  }
}

async function show(api: PoliciesApi, { tenant }: Caller): Promise<HttpAnswer> {
  const policies = await api.definitions.policies(tenant);
  const checked = await checkPolicies(api.engines, policies);
  const { schema, files } = api.shipped();
  return json(200, { ...checked, ...policies, ...(policies.engine === 'cedar' && { shipped: { schema, files } }) });
}

async function publish(api: PoliciesApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  assertMayDefine(caller);
  const policies = parseBody(Policies, event);
  const hash = await mustBeSound(api, policies);
  await api.definitions.savePolicies(caller.tenant, policies);
  return json(200, { hash });
}

/** Newest runs first, a few at a time; the caller asks on until there is no cursor left. */
async function replayRuns(api: PoliciesApi, caller: Caller, event: HttpEvent): Promise<HttpAnswer> {
  assertMayReplay(caller);
  const { policies, since = '', cursor } = parseBody(Replay, event);
  await mustBeSound(api, policies);
  const secret = await api.cursorSecret();
  const list = `${caller.tenant}/policies/replay`;
  const page = await api.runs.listRuns(caller.tenant, {
    limit: REPLAYED_RUNS,
    ...(cursor !== undefined && { after: openCursor(cursor, list, secret) }),
  });
  const runs = page.items.filter(({ createdAt }) => createdAt >= since);
  const recorded = (await Promise.all(runs.map((run) => decisionsOf(api, run)))).flat();
  const goesOn = page.next !== undefined && runs.length === page.items.length;
  return json(200, {
    runs: runs.length,
    examined: recorded.length,
    flips: await replay(recorded, api.policyOf(policies)),
    nextCursor: goesOn && page.next !== undefined ? sealCursor(page.next, list, secret) : null,
  });
}

async function decisionsOf(api: PoliciesApi, { tenant, runId }: Run): Promise<RecordedDecision[]> {
  const loaded = await api.runs.load(tenant, runId);
  return (loaded?.steps ?? []).flatMap(({ id, governed }) => (governed ? [{ runId, step: id, governed }] : []));
}

async function mustBeSound(api: PoliciesApi, policies: TenantPolicies): Promise<string> {
  const checked = await checkPolicies(api.engines, policies);
  if ('problems' in checked) throw new Problem(422, 'POLICY_INVALID', checked.problems.join('\n'));
  return checked.hash;
}

function assertMayReplay({ role }: Caller): void {
  if (MAY_REPLAY.includes(role)) return;
  throw new Problem(403, 'FORBIDDEN', `a ${role} may look at policies; ask an owner, admin or auditor to replay some`);
}
