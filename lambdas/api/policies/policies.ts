import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { checkPolicies, type SoundPolicies } from '../../policy/check-policies.ts';
import type { Policy, TenantPolicies } from '../../policy/policy.ts';
import type { PolicyEngines } from '../../policy/policy-engine.ts';
import { type RecordedDecision, replay } from '../../policy/replay.ts';
import type { ShippedPolicies } from '../../policy/shipped-policies.ts';
import type { Run } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { authorOf } from '../definitions/change-person.ts';
import { type Paged, readPage } from '../paging/paging.ts';
import { parseBody } from '../request.ts';
import { byRoute, type Handlers } from '../router.ts';

/** They are kept in one row, of which DynamoDB takes 400 KB. */
const POLICIES_MAX_BYTES = 300 * 1024;
/** Runs replayed per request: even runs of hundreds of steps are decided well within the function's time. */
const REPLAYED_RUNS = 10;

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

export interface PoliciesApi extends Paged {
  runs: Pick<RunStore, 'listRuns' | 'load'>;
  definitions: Pick<Definitions, 'policies' | 'savePolicies'>;
  clock: Clock;
  ids: Ids;
  engines: PolicyEngines;
  /** The tools there are, which policies may name. */
  tools: readonly string[];
  shipped: () => ShippedPolicies;
  /** The policy of a tenant that had published these. */
  policyOf(policies: TenantPolicies): Policy;
}

const HANDLERS: Handlers<PoliciesApi, 'policies'> = {
  'GET /api/v1/policies': show,
  'PUT /api/v1/policies': publish,
  'POST /api/v1/policies/replay': replayRuns,
};

/** What decides about a tenant's writes: shown, published, and tried on what was decided before. */
export const handlePolicies = byRoute(HANDLERS);

async function show(api: PoliciesApi, { tenant }: Caller): Promise<HttpResponse> {
  const policies = await api.definitions.policies(tenant);
  const checked = await checkPolicies(api.engines, policies, api.tools);
  const { schema, files } = api.shipped();
  return json(200, { ...checked, ...policies, ...(policies.engine === 'cedar' && { shipped: { schema, files } }) });
}

async function publish(api: PoliciesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'define', 'publish policies');
  const policies = parseBody(Policies, event);
  const published = await mustBeSound(api, policies);
  const replaced = await checkPolicies(api.engines, await api.definitions.policies(caller.tenant), api.tools);
  await api.definitions.savePolicies(caller.tenant, policies, authorOf(api, caller));
  return json(200, { ...published, replaced });
}

/** Newest runs first, a few at a time; the caller asks on until there is no cursor left. */
async function replayRuns(api: PoliciesApi, caller: Caller, event: HttpEvent): Promise<HttpResponse> {
  mayOrRefuse(caller, 'audit', 'replay policies');
  const { policies, since = '', cursor } = parseBody(Replay, event);
  await mustBeSound(api, policies);
  const { tenant } = caller;
  const page = await readPage(api, `${tenant}/policies/replay`, { limit: REPLAYED_RUNS, cursor }, (place) =>
    api.runs.listRuns(tenant, place),
  );
  const runs = page.items.filter(({ createdAt }) => createdAt >= since);
  const recorded = (await Promise.all(runs.map((run) => decisionsOf(api, run)))).flat();
  return json(200, {
    runs: runs.length,
    examined: recorded.length,
    flips: await replay(recorded, api.policyOf(policies)),
    nextCursor: runs.length === page.items.length ? page.nextCursor : null,
  });
}

async function decisionsOf(api: PoliciesApi, { tenant, runId }: Run): Promise<RecordedDecision[]> {
  const loaded = await api.runs.load(tenant, runId);
  return (loaded?.steps ?? []).flatMap(({ id, governed }) => (governed ? [{ runId, step: id, governed }] : []));
}

async function mustBeSound(api: PoliciesApi, policies: TenantPolicies): Promise<SoundPolicies> {
  const checked = await checkPolicies(api.engines, policies, api.tools);
  if ('problems' in checked) throw new Problem(422, 'POLICY_INVALID', checked.problems.join('\n'));
  return checked;
}
