import * as z from 'zod';
import { SESSION_OUTCOMES, type SessionOutcome } from '../../../lambdas/run/session.ts';
import type { Contract } from './session.ts';

const Script = z.object({
  actions: z.array(z.object({ tool: z.string(), input: z.record(z.string(), z.unknown()) })).default([]),
  outcome: z.enum(SESSION_OUTCOMES).default('succeeded'),
});
/** A test says in the context of the step, as JSON, what the session shall do. */
const Scripted = z.object({ script: z.string().transform((text) => Script.parse(JSON.parse(text))) });

const Issue = z.object({ issue: z.object({ title: z.string(), body: z.string().nullish() }) });

export interface Findings {
  actions: { tool: string; input: Record<string, unknown> }[];
  outcome: SessionOutcome;
  summary: string;
}

const LABELS: [RegExp, string][] = [
  [/twice|duplicate|crash|error|fail|broken|wrong/i, 'bug'],
  [/docs?\b|typo|readme/i, 'documentation'],
];
const ASSIGNEES: [RegExp, string][] = [
  [/refund|payment|webhook|invoice/i, 'ana-ortiz'],
  [/deploy|network|login|password/i, 'ben-okafor'],
];

/** Fixed rules in place of a model: the same issue has the same findings. */
export function findingsFor({ context }: Contract): Findings {
  const scripted = Scripted.safeParse(context);
  if (scripted.success) return { ...scripted.data.script, summary: 'The session did what the test says.' };
  const found = Issue.safeParse(context);
  if (!found.success) return { actions: [], outcome: 'needs_human', summary: 'The context has no issue to triage.' };
  const { title, body } = found.data.issue;
  const text = `${title}\n${body ?? ''}`;
  const first = (rules: [RegExp, string][], otherwise: string) =>
    rules.find(([pattern]) => pattern.test(text))?.[1] ?? otherwise;
  const label = first(LABELS, 'enhancement');
  const assignee = first(ASSIGNEES, 'chloe');
  return {
    actions: [
      { tool: 'github.labels.add', input: { labels: [label] } },
      { tool: 'github.assignees.add', input: { assignees: [assignee] } },
    ],
    outcome: 'succeeded',
    summary: `"${title}" looks like ${label}. ${assignee} knows this part best.`,
  };
}
