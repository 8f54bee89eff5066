import * as z from 'zod';
import { Sha256 } from '../../run/digest.ts';
import type { EvidenceApproval } from './approval-entry.ts';
import type { EvidenceCommit } from './commit-entry.ts';
import { actionFacts, Count, DerivedPart, Digest } from './entry-parts.ts';
import { Cost, type EvidenceReceipt } from './receipt-entry.ts';

/** Entries that the sealer and the verifier compute from other entries. */
export const Decision = z.strictObject({
  /** The number of its commit. */
  commit: z.int().positive(),
  step: z.string(),
  index: Count,
  tool: z.string(),
  target: z.string(),
  verdict: z.string(),
  policyHash: z.string(),
  policies: z.array(z.string()),
  reasons: z.array(z.string()),
  /** Why policy could not decide. */
  message: Digest.optional(),
  actionHash: z.string(),
  derived: z.array(DerivedPart).optional(),
  /** From format 2 on: the rest of the action, and the salted digests that its hash is made of. */
  action: z.strictObject({ connector: z.string(), instance: z.string(), ...actionFacts }).optional(),
  fields: z.record(z.string(), Sha256).optional(),
  inputDigest: Sha256.optional(),
  tier: z.string().optional(),
  quorum: Count.optional(),
  groups: z.array(z.array(z.string())).optional(),
});
export type Decision = z.infer<typeof Decision>;

/** All decisions of policy, with the number of their commit. */
export function decisionsOf(commits: readonly EvidenceCommit[]): Decision[] {
  return commits.flatMap(({ seq, events }) =>
    events.flatMap((event) => {
      if (event.type !== 'policy.decided') return [];
      const { type: _, ...decision } = event;
      return [{ commit: seq, ...decision } as Decision];
    }),
  );
}

export const policiesOf = (decisions: readonly Decision[]): string[] =>
  [...new Set(decisions.map(({ policyHash }) => policyHash))].sort();

/** The cost of the run's calls, by provider and model. */
export const Spent = Cost.extend({ calls: z.int().positive() });
export type Spent = z.infer<typeof Spent>;

/** In the order of the first call. There is a price only if all calls have one. */
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
 * The minimum number of AWS requests of the run, by service and operation. Reads, messages, retries and the sealing are
 * not counted, because the run has no record of them.
 */
export const AwsRequests = z.strictObject({
  'dynamodb.TransactWriteItems': z.int().positive(),
  'states.StartExecution': z.int().positive().optional(),
  'bedrock.Converse': z.int().positive().optional(),
});
export type AwsRequests = z.infer<typeof AwsRequests>;

/** An execution reminds people and notifies further ones. An approval that is decided earlier needs none; it may expire without one. */
const provesExecution = ({ remindedAt, escalatedAt }: Pick<EvidenceApproval, 'remindedAt' | 'escalatedAt'>) =>
  (remindedAt ?? escalatedAt) !== undefined;

/**
 * One transaction for each commit, one execution for each approval that was reminded or overdue, and every call of a
 * model. Releases that sealed format 1 started an execution for each approval.
 */
export function awsRequestsOf(run: {
  format: 'countersign.evidence/1' | 'countersign.evidence/2';
  commits: readonly unknown[];
  approvals: readonly Pick<EvidenceApproval, 'remindedAt' | 'escalatedAt'>[];
  cost: readonly Spent[];
}): AwsRequests {
  const isFirst = run.format === 'countersign.evidence/1';
  const executions = isFirst ? run.approvals : run.approvals.filter(provesExecution);
  const calls = run.cost.filter(({ provider }) => provider === 'bedrock').reduce((sum, each) => sum + each.calls, 0);
  return {
    'dynamodb.TransactWriteItems': run.commits.length,
    'states.StartExecution': executions.length || undefined,
    'bedrock.Converse': calls || undefined,
  };
}
