import type * as z from 'zod';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import type { PendingPolicies } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { TextArchive } from '../../pipeline/text-archive.ts';
import { checkPolicies, type SoundPolicies } from '../../policy/check-policies.ts';
import { loosenings } from '../../policy/loosenings.ts';
import type { Policy, TenantPolicies } from '../../policy/policy.ts';
import type { PolicyEngines } from '../../policy/policy-engine.ts';
import { type RecordedDecision, replay } from '../../policy/replay.ts';
import type { ShippedPolicies } from '../../policy/shipped-policies.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { Run } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import { readYaml } from '../../workflow/read-yaml.ts';
import { requirePerson } from '../authorizer/caller.ts';
import { policyRoutes } from '../contract/policies.ts';
import { authorOf, currentCaller } from '../definitions/change-person.ts';
import { accepted, requestSecondOwner } from '../definitions/second-owner.ts';
import { type Paged, readPage } from '../paging.ts';
import { parsed } from '../request.ts';
import { router } from '../router.ts';
import { PolicyCases, tryCases } from './policy-cases.ts';

/** Runs per request: even runs of hundreds of steps take a fraction of the function's timeout. */
const REPLAYED_RUNS = 10;

export interface PoliciesPorts extends Paged {
  runs: Pick<RunStore, 'listRuns' | 'load'>;
  definitions: Pick<Definitions, 'policies' | 'savePolicies' | 'people' | 'pendingChanges' | 'requestChange'>;
  /** In a prod stage, a second owner confirms policies that do more than forbid. */
  secondOwner: boolean;
  clock: Clock;
  ids: Ids;
  engines: PolicyEngines;
  /** The existing tools, which policies can name. */
  tools: readonly string[];
  shipped: () => ShippedPolicies;
  texts: Pick<TextArchive, 'keepPolicies'>;
  /** The policy of a tenant that had published these. */
  policyOf(policies: TenantPolicies): Policy;
}

export const handlePolicies = router<PoliciesPorts, typeof policyRoutes>(policyRoutes, {
  async getPolicies(ports, { caller: { tenant } }) {
    const policies = await ports.definitions.policies(tenant);
    const checked = await checkPolicies(ports.engines, policies, ports.tools);
    const shipped = policies.engine === 'cedar' ? ports.shipped() : undefined;
    return { status: 200, body: { ...checked, ...policies, shipped } };
  },

  async publishPolicies(ports, { caller, body: policies }) {
    const { tenant } = caller;
    const published = await mustBeValid(ports, policies);
    const before = await ports.definitions.policies(tenant);
    // Both, because an upgrade may have changed the set since it was published. No decision precedes the text of its policies.
    await ports.texts.keepPolicies(tenant, [before, policies]);
    const widens = ports.secondOwner ? await loosenings(ports.engines, before, policies) : [];
    const by = authorOf(ports, caller);
    if (widens.length > 0) {
      const { people, current } = await currentCaller(ports, caller, 'policies:write');
      requirePerson(current, 'loosen policies');
      const requested = { kind: 'policies' as const, replaces: hashOf(before), after: policies, widens };
      return accepted(await requestSecondOwner<PendingPolicies>(ports, tenant, by, { people, requested, before }));
    }
    const replaced = await checkPolicies(ports.engines, before, ports.tools);
    await ports.definitions.savePolicies(tenant, policies, by, { replaces: before });
    return { status: 200, body: { ...published, replaced } };
  },

  async testPolicies(ports, { body: { policies, cases } }) {
    const { hash, policies: ids } = await mustBeValid(ports, policies);
    const tried = await tryCases(casesIn(cases), ports.policyOf(policies));
    return { status: 200, body: { hash, policies: ids, cases: tried } };
  },

  async replayPolicies(ports, { caller: { tenant }, body: { policies, since = '', cursor } }) {
    await mustBeValid(ports, policies);
    const page = await readPage(ports, `${tenant}/policies/replay`, { limit: REPLAYED_RUNS, cursor }, (place) =>
      ports.runs.listRuns(tenant, place),
    );
    const runs = page.items.filter(({ createdAt }) => createdAt >= since);
    const recorded = (await Promise.all(runs.map((run) => decisionsOf(ports, run)))).flat();
    const flips = await replay(recorded, ports.policyOf(policies));
    const nextCursor = runs.length === page.items.length ? page.nextCursor : null;
    return { status: 200, body: { runs: runs.length, examined: recorded.length, flips, nextCursor } };
  },
});

async function decisionsOf({ runs }: PoliciesPorts, { tenant, runId }: Run): Promise<RecordedDecision[]> {
  const loaded = await runs.load(tenant, runId);
  return (loaded?.steps ?? []).flatMap(({ id, governed, updatedAt }) =>
    governed ? [{ runId, step: id, governed, at: updatedAt }] : [],
  );
}

async function mustBeValid({ engines, tools }: PoliciesPorts, policies: TenantPolicies): Promise<SoundPolicies> {
  const checked = await checkPolicies(engines, policies, tools);
  if ('problems' in checked) throw new Problem(422, 'POLICY_INVALID', checked.problems.join('\n'));
  return checked;
}

function casesIn(text: string): z.infer<typeof PolicyCases> {
  const read = readYaml(text);
  if ('mistakes' in read) {
    const said = read.mistakes.map(({ line, message }) => `line ${line}: ${message}`);
    throw new Problem(400, 'BAD_REQUEST', `the cases are not YAML: ${said.join('; ')}`);
  }
  return parsed(PolicyCases, read.document.toJS() ?? []) as z.infer<typeof PolicyCases>;
}
