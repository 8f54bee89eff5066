import * as z from 'zod';
import type { EvidenceCommit } from './commit-entry.ts';
import { Count, DerivedPart, Digest } from './entry-parts.ts';
import { Cost, type EvidenceReceipt } from './receipt-entry.ts';

/** Entries that only gather what others say: the sealer and the verifier make them the same way. */
export const Decision = z.strictObject({
  /** The commit it was recorded in. */
  commit: z.int().positive(),
  step: z.string(),
  index: Count,
  tool: z.string(),
  target: z.string(),
  verdict: z.string(),
  policyHash: z.string(),
  policies: z.array(z.string()),
  reasons: z.array(z.string()),
  /** What the engine said when it could not decide. */
  message: Digest.optional(),
  actionHash: z.string(),
  derived: z.array(DerivedPart).optional(),
  tier: z.string().optional(),
  quorum: Count.optional(),
  groups: z.array(z.array(z.string())).optional(),
});
export type Decision = z.infer<typeof Decision>;

/** Every word policy said, with the commit that holds it: the chain proves it. */
export function decisionsOf(commits: readonly EvidenceCommit[]): Decision[] {
  return commits.flatMap(({ seq, events }) =>
    events.flatMap((event) => {
      const { type, ...decision } = event;
      return type === 'policy.decided' ? [{ commit: seq, ...decision } as Decision] : [];
    }),
  );
}

export const policiesOf = (decisions: readonly Decision[]): string[] =>
  [...new Set(decisions.map(({ policyHash }) => policyHash))].sort();

/** What the run's own calls cost, by provider and model. */
export const Spent = Cost.extend({ calls: z.int().positive() });
export type Spent = z.infer<typeof Spent>;

/** In the order of their first call; no price unless all calls have one. */
export function spentBy(runId: string, receipts: readonly EvidenceReceipt[]): Spent[] {
  const spent = new Map<string, Spent>();
  for (const { runId: payer, cost } of receipts) {
    if (!cost || payer !== runId) continue;
    const { provider, model, inputTokens, outputTokens, usd, calls = 1 } = cost;
    const name = JSON.stringify([provider, model]);
    const before = spent.get(name);
    spent.set(name, {
      provider,
      model,
      calls: (before?.calls ?? 0) + calls,
      inputTokens: (before?.inputTokens ?? 0) + inputTokens,
      outputTokens: (before?.outputTokens ?? 0) + outputTokens,
      usd: usd === undefined || (before && before.usd === undefined) ? undefined : (before?.usd ?? 0) + usd,
    });
  }
  return [...spent.values()];
}

/**
 * The requests to AWS that the run cannot do without, by service and operation. No bill: reads, messages, retries
 * and the sealing leave nothing in the run that would prove them.
 */
export const AwsRequests = z.strictObject({
  'dynamodb.TransactWriteItems': z.int().positive(),
  'states.StartExecution': z.int().positive().optional(),
  'bedrock.Converse': z.int().positive().optional(),
});
export type AwsRequests = z.infer<typeof AwsRequests>;

/** Each commit is one transaction, each approval is held by one execution, each call of a model has its receipt. */
export function awsRequestsOf(run: {
  commits: readonly unknown[];
  approvals: readonly unknown[];
  cost: readonly Spent[];
}): AwsRequests {
  const calls = run.cost.filter(({ provider }) => provider === 'bedrock').reduce((sum, each) => sum + each.calls, 0);
  return {
    'dynamodb.TransactWriteItems': run.commits.length,
    'states.StartExecution': run.approvals.length || undefined,
    'bedrock.Converse': calls || undefined,
  };
}
