import type { Person } from '../../lambdas/people/people.ts';
import type { ProposedAction } from '../../lambdas/policy/policy.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

export const NOW_MS = Date.parse(STORY_BEGINS_AT);
const minutesOn = (minutes: number): string => new Date(NOW_MS + minutes * 60_000).toISOString();

const person = (id: string, name: string, slack: string): Person => ({
  id,
  name,
  role: 'approver',
  tier: 'high',
  groups: [],
  identities: [`slack:T100ACME/${slack}`],
});

export const PEOPLE: readonly Person[] = [
  person('ana', 'Ana Ortiz', 'U100ANA'),
  person('ben', 'Ben Okafor', 'U200BEN'),
];

export const ACTION: ProposedAction = {
  tool: 'servicenow.incident.update',
  connector: 'servicenow',
  instance: 'acme',
  target: 'servicenow:acme:incident:9d385017c611228701d22104cc95c371',
  fields: { assignment_group: 'Database', state: 2 },
  effect: 'natural',
  risk: 'medium',
  blastRadius: 'low',
  environment: 'prod',
  destructive: false,
  reversible: true,
  undo: false,
  makers: [],
};

/** An open approval of a write that policy requires; tests override fields. */
export function approvalOf(differing: Partial<Approval> = {}): Approval {
  return {
    schemaVersion: 2,
    approvalId: 'run_0123456789abcdef.1',
    tenant: 'acme',
    runId: 'run_0123456789abcdef',
    stepIndex: 1,
    stepId: 'route',
    status: 'notified',
    revision: 2,
    requestedAt: STORY_BEGINS_AT,
    remindAt: minutesOn(5),
    slaAt: minutesOn(10),
    expiresAt: minutesOn(24 * 60),
    automation: 'triage-incident',
    workflow: { name: 'triage-incident', version: 3 },
    title: 'Checkout fails',
    subject: 'servicenow:acme:INC0010001',
    asks: 'policy',
    action: ACTION,
    before: { assignment_group: 'Service Desk' },
    after: { assignment_group: 'Database' },
    actionHash: 'a'.repeat(64),
    grounds: { policyHash: 'b'.repeat(64), policies: ['medium-risk'], reasons: ['a medium risk needs one approval'] },
    requirement: { tier: 'medium', quorum: 1, groups: [] },
    makers: ['github:octo-dev'],
    votes: [],
    edits: [],
    channel: '#approvals',
    card: { channel: 'C0APPROVALS', ts: '1767323045.000001' },
    ...differing,
  };
}

/** An action with these fields and no known state. */
export const writing = (fields: Record<string, unknown>): Partial<Approval> => ({
  action: { ...ACTION, fields },
  before: undefined,
  after: undefined,
});
