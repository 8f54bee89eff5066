import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import * as z from 'zod';
import { connectorOf, RISKS } from '../../../lambdas/connectors/connector.ts';
import { findOperation } from '../../../lambdas/connectors/registry.ts';
import { GroupSets, groupsInOrder } from '../../../lambdas/policy/approval-requirement.ts';
import type { Policy, PolicyDecision, PolicyRequest } from '../../../lambdas/policy/policy.ts';
import { beforeValues } from '../../../lambdas/policy/policy-facts.ts';
import { groupsText } from '../../../lambdas/run/events/requirement-text.ts';
import { EXIT, Failure } from '../failure.ts';
import { fileFailure } from '../read-file.ts';

/** Missing fields get the values of the tool, or low-risk defaults. */
const CaseRequest = z.strictObject({
  tool: z.string(),
  target: z.string().default('a:target'),
  instance: z.string().default('acme'),
  fields: z.record(z.string(), z.unknown()).default({}),
  effect: z.enum(['read', 'natural', 'probe', 'opaque']).optional(),
  risk: z.enum(RISKS).optional(),
  blastRadius: z.enum(RISKS).default('low'),
  environment: z.enum(['prod', 'staging', 'dev']).default('dev'),
  destructive: z.boolean().optional(),
  reversible: z.boolean().optional(),
  undo: z.boolean().default(false),
  makers: z.array(z.string()).default([]),
  automation: z.string().default('an-automation'),
  workspace: z.string().default('default'),
  workflow: z
    .strictObject({ name: z.string(), version: z.int().positive() })
    .default({ name: 'a-workflow', version: 1 }),
  source: z.string().default('github'),
  writesBefore: z.int().min(0).default(0),
  /** The time of the decision; by default a Wednesday at noon. */
  at: z.iso.datetime().default('2026-01-07T12:00:00Z'),
  trigger: z
    .strictObject({
      event: z.string().default('issues.opened'),
      severity: z.string().optional(),
      priority: z.string().optional(),
      labels: z.array(z.string()).optional(),
    })
    .default({ event: 'issues.opened' }),
  /** The current values of what the write changes. */
  before: z.record(z.string(), z.unknown()).optional(),
});

const Verdict = z.enum(['allow', 'needs_approval', 'deny']);
const Expected = z.union([
  Verdict.transform((verdict) => ({ verdict })),
  z.strictObject({
    verdict: Verdict,
    tier: z.enum(RISKS).optional(),
    quorum: z.int().optional(),
    groups: GroupSets.optional(),
    /** All of these must have determined the verdict; other policies may have too. */
    policies: z.array(z.string()).optional(),
  }),
]);
type Expected = {
  verdict: PolicyDecision['verdict'];
  tier?: string;
  quorum?: number;
  groups?: string[][];
  policies?: string[];
};

const PolicyCase = z.strictObject({ name: z.string(), request: CaseRequest, expect: Expected });
export const PolicyCases = z.array(PolicyCase).min(1);

export interface TriedCase {
  file: string;
  name: string;
  decision: PolicyDecision;
  /** Differences from the expected decision; empty if the case passed. */
  wrong: string[];
}

/** Runs every case of a file, or of all files of a folder. */
export async function tryCases(path: string, policy: Policy): Promise<TriedCase[]> {
  const tried: TriedCase[] = [];
  for (const file of caseFiles(path)) {
    for (const { name, request, expect } of readCases(file)) {
      const decision = await policy.decide(requestOf(request));
      tried.push({ file, name, decision, wrong: differences(expect, decision) });
    }
  }
  return tried;
}

function caseFiles(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const files = readdirSync(path).filter((name) => /\.ya?ml$/.test(name));
    if (files.length > 0) return files.sort().map((name) => join(path, name));
  } catch (cause) {
    throw fileFailure('read', path, cause);
  }
  throw new Failure(EXIT.usage, `${path} contains no cases (.yaml)`);
}

function readCases(file: string): z.infer<typeof PolicyCases> {
  let content: unknown;
  try {
    content = parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  const cases = PolicyCases.safeParse(content);
  if (cases.success) return cases.data;
  throw new Failure(EXIT.usage, `${file} is not a list of cases:\n${z.prettifyError(cases.error)}`);
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
