import type { EvidenceCommit } from './bundle/commit-entry.ts';

export const textKey = (tenant: string, hash: string) => `texts/${tenant}/${hash}`;

/** False for a decision whose policy set could not be read. */
export const isTextHash = (hash: unknown): hash is string => typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash);

export interface NamedTexts {
  policies: string[];
  workflow: string | undefined;
}

/** The hashes of the policy sets and of the workflow version of a run, in its commits. */
export function textsNamedIn(commits: readonly EvidenceCommit[]): NamedTexts {
  const events = commits.flatMap((commit) => commit.events);
  const workflow = events.find(({ type }) => type === 'run.enriched')?.workflowHash;
  const decided = events.filter(({ type }) => type === 'policy.decided').map(({ policyHash }) => policyHash);
  return {
    policies: [...new Set(decided.filter(isTextHash))].sort(),
    workflow: isTextHash(workflow) ? workflow : undefined,
  };
}
