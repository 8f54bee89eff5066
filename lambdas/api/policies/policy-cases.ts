import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { connectorOf, RISKS } from '../../connectors/connector.ts';
import { findOperation } from '../../connectors/registry.ts';
import { GroupSets, groupsInOrder } from '../../policy/approval-requirement.ts';
import type { Policy, PolicyDecision, PolicyRequest } from '../../policy/policy.ts';
import { beforeValues } from '../../policy/policy-facts.ts';
import { groupsText } from '../../run/events/requirement-text.ts';

/** Missing fields get the values of the tool, or low-risk defaults. */
const CaseRequest = z.strictObject({
  tool: z.string().describe('The tool of the step. `countersign tools` lists all tools.'),
  target: z.string().default('a:target').describe('What the call would change or read.'),
  instance: z.string().default('acme').describe('The instance of the connection.'),
  fields: z.record(z.string(), z.unknown()).default({}).describe('The values to write.'),
  effect: z
    .enum(['read', 'natural', 'probe', 'opaque'])
    .optional()
    .describe("What a lost response means. Default: the tool's effect."),
  risk: z.enum(RISKS).optional().describe("Default: the tool's risk."),
  blastRadius: z.enum(RISKS).default('low').describe('How much a mistake would affect.'),
  environment: z.enum(['prod', 'staging', 'dev']).default('dev').describe('The kind of the stage.'),
  destructive: z.boolean().optional().describe('No later write can restore what is lost. Default: as the tool says.'),
  reversible: z.boolean().optional().describe('The write can be undone. Default: as the tool says.'),
  undo: z.boolean().default(false).describe('The call undoes a write.'),
  makers: z
    .array(z.string())
    .default([])
    .describe('The people who may not approve, because their input is in the write.'),
  automation: z.string().default('an-automation').describe('The automation of the run.'),
  workspace: z.string().default('default').describe('The workspace of the automation.'),
  workflow: z
    .strictObject({
      name: z.string().describe('The name of the workflow.'),
      version: z.int().positive().describe('Its version.'),
    })
    .default({ name: 'a-workflow', version: 1 })
    .describe('The workflow of the run.'),
  source: z.string().default('github').describe('Where the event of the run comes from.'),
  writesBefore: z.int().min(0).default(0).describe('How many writes the run has made before.'),
  at: z.iso
    .datetime()
    .default('2026-01-07T12:00:00Z')
    .describe('The time of the decision. Default: a Wednesday at noon.'),
  trigger: z
    .strictObject({
      event: z.string().default('issues.opened').describe('The event that started the run.'),
      severity: z.string().optional().describe('The severity of the event.'),
      priority: z.string().optional().describe('The priority of the ServiceNow record.'),
      labels: z.array(z.string()).optional().describe('The labels of the GitHub issue or pull request.'),
    })
    .default({ event: 'issues.opened' })
    .describe('Facts about the event.'),
  before: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The current values of what the write changes. Default: the target was not read.'),
});

const Verdict = z.enum(['allow', 'needs_approval', 'deny']);
const Expected = z.union([
  Verdict.transform((verdict) => ({ verdict })),
  z.strictObject({
    verdict: Verdict.describe('What policy must decide.'),
    tier: z.enum(RISKS).optional().describe('The tier that approvers must have.'),
    quorum: z.int().optional().describe('How many people must approve.'),
    groups: GroupSets.optional().describe('The groups of the approvers.'),
    policies: z
      .array(z.string())
      .optional()
      .describe('All of these must have determined the verdict; other policies may have too.'),
  }),
]);
type Expected = {
  verdict: PolicyDecision['verdict'];
  tier?: string;
  quorum?: number;
  groups?: string[][];
  policies?: string[];
};

const PolicyCase = z.strictObject({
  name: z.string().describe('What the case shows, as a sentence.'),
  request: CaseRequest.describe('The call on which policy decides. Fields that are missing have defaults.'),
  expect: Expected.describe('The verdict, or the verdict with its requirement.'),
});
export const PolicyCases = z.array(PolicyCase).min(1);

export interface TriedCase {
  name: string;
  decision: PolicyDecision;
  /** Differences from the expected decision; empty if the case passed. */
  wrong: string[];
}

/** Decides about the request of each case, and compares the decision with the expected one. */
export async function tryCases(cases: z.infer<typeof PolicyCases>, policy: Policy): Promise<TriedCase[]> {
  const tried: TriedCase[] = [];
  for (const { name, request, expect } of cases) {
    const decision = await policy.decide(requestOf(request));
    tried.push({ name, decision, wrong: differences(expect, decision) });
  }
  return tried;
}

function requestOf(request: z.infer<typeof CaseRequest>): PolicyRequest {
  const { automation, workspace, workflow, source, writesBefore, at, trigger, before, ...action } = request;
  const operation = findOperation(action.tool);
  return {
    tenant: 'acme',
    automation,
    workspace,
    workflow,
    source,
    writesBefore,
    at,
    trigger,
    ...(before && { before: beforeValues(before) }),
    action: {
      ...action,
      connector: connectorOf(action.tool),
      effect: action.effect ?? operation?.effect ?? 'opaque',
      risk: action.risk ?? operation?.risk ?? 'high',
      destructive: action.destructive ?? (operation?.destructive === true && !action.undo),
      reversible: action.reversible ?? operation?.reversible ?? false,
    },
  };
}

function differences(expected: Expected, decision: PolicyDecision): string[] {
  // An error also denies, but it does not prove that the policies deny.
  if (decision.verdict === 'deny' && decision.code === 'POLICY_ERROR') return ['policy could not decide'];
  if (expected.verdict !== decision.verdict) return [`expected ${expected.verdict}`];
  const { tier, quorum, groups } = decision.verdict === 'needs_approval' ? decision.requirement : {};
  const wrong: string[] = [];
  if (expected.tier !== undefined && expected.tier !== tier) wrong.push(`expected tier ${expected.tier}`);
  if (expected.quorum !== undefined && expected.quorum !== quorum) wrong.push(`expected quorum ${expected.quorum}`);
  if (expected.groups && !isDeepStrictEqual(groupsInOrder(expected.groups), groupsInOrder(groups ?? []))) {
    wrong.push(`expected groups ${groupsText(expected.groups) || 'none'}`);
  }
  const missing = expected.policies?.filter((id) => !decision.policies.includes(id)) ?? [];
  if (missing.length > 0) wrong.push(`expected it to be determined by ${missing.join(', ')}`);
  return wrong;
}
