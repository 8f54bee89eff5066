import { describe, expect, it } from 'vitest';
import { finalWrite, gateFor } from '../../lambdas/policy/gates.ts';
import type { ApprovalRequirement } from '../../lambdas/policy/policy.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { aRequest } from './requests.ts';

const LABEL = { tool: 'github.labels.add' };
const READ = { tool: 'servicenow.incident.get' };
const workflow = (...steps: object[]) => Workflow.parse({ name: 'test', steps });
const TRUE = '{% true %}';

describe('the final write', () => {
  it.each([
    [
      'is the last of a list',
      [
        { id: 'a', ...LABEL },
        { id: 'b', ...LABEL },
        { id: 'c', ...READ },
      ],
      1,
    ],
    [
      'needs all others, wherever it stands',
      [
        { id: 'a', ...LABEL, needs: ['b'] },
        { id: 'b', ...LABEL, needs: [] },
      ],
      0,
    ],
    [
      'may need them through others',
      [
        { id: 'a', ...LABEL, needs: [] },
        { id: 'b', ...READ, needs: ['a'] },
        { id: 'c', ...LABEL, needs: ['b'] },
      ],
      2,
    ],
    [
      'may follow one that is skipped',
      [
        { id: 'a', ...LABEL, when: TRUE },
        { id: 'b', ...LABEL },
      ],
      1,
    ],
  ])('%s', (_what, steps, index) => {
    expect(finalWrite(workflow(...steps))).toEqual({ index });
  });

  it.each([
    [
      'it may be skipped',
      [
        { id: 'a', ...LABEL },
        { id: 'b', ...LABEL, when: TRUE },
      ],
      /before "b".* remove "when"/,
    ],
    [
      'two come last',
      [
        { id: 'a', ...LABEL, needs: [] },
        { id: 'b', ...LABEL, needs: [] },
      ],
      /one write that comes after all others/,
    ],
    ['there is no write', [{ id: 'a', ...READ }], /one write that comes after all others/],
    [
      'they need each other',
      [
        { id: 'a', ...LABEL, needs: ['b'] },
        { id: 'b', ...LABEL, needs: ['a'] },
      ],
      /one write that comes after all others/,
    ],
  ])('does not exist if %s', (_what, steps, problem) => {
    expect(finalWrite(workflow(...steps))).toEqual({ problem: expect.stringMatching(problem) });
  });
});

const GROUNDS = { policyHash: 'p', policies: [], reasons: [] };
const ALLOW = { verdict: 'allow' as const, ...GROUNDS };

describe('a gate', () => {
  const mild: ApprovalRequirement = { tier: 'low', quorum: 1, groups: [] };
  const strict: ApprovalRequirement = { tier: 'high', quorum: 2, groups: [['sre']] };
  const one = workflow({ id: 'a', ...LABEL });
  const decided = { action: aRequest().action, workflow: one, steps: new Map(), index: 0 };

  it('of an earlier approval stays, even if nothing else requires it', () => {
    const askedBefore = { asks: 'mode', requirement: strict } as const;
    expect(gateFor({ ...decided, decision: ALLOW, askedBefore })).toEqual({ kind: 'closed', ...askedBefore });
  });

  it('combines an earlier requirement with the current one of policy', () => {
    const decision = { ...GROUNDS, verdict: 'needs_approval' as const, requirement: mild };
    const gate = gateFor({ ...decided, decision, askedBefore: { asks: 'mode', requirement: strict } });
    expect(gate).toEqual({ kind: 'closed', asks: 'policy', requirement: strict });
  });

  it.each([[0.9], ['0.9'], [1.1], [-1], [Number.NaN], [undefined], [{ shown: '(known after apply)' }]])(
    'of a mode is passed by a confidence of %j only if that is a share of one',
    (confidence) => {
      const sure = Workflow.parse({ ...one, validation: { mode: 'per_step', autoApproveThreshold: 0.8 } });
      const { kind } = gateFor({ ...decided, workflow: sure, decision: ALLOW, confidence });
      expect(kind).toBe(confidence === 0.9 ? 'auto_approved' : 'closed');
    },
  );

  it.each([
    ['above the workflow', 0.95, 0.9, 'closed'],
    ['above the workflow', 0.95, 0.95, 'auto_approved'],
    ['below the workflow', 0.5, 0.6, 'auto_approved'],
    ['of zero', 0, 0, 'auto_approved'],
  ] as const)(
    "of a mode is passed at the step's own threshold: %s, %d, with a confidence of %d: %s",
    (_, own, confidence, kind) => {
      const validation = { mode: 'per_step', autoApproveThreshold: 0.8 };
      const steps = [{ id: 'a', ...LABEL, confidence: TRUE, autoApproveThreshold: own }];
      const gate = gateFor({
        ...decided,
        workflow: Workflow.parse({ ...one, validation, steps }),
        decision: ALLOW,
        confidence,
      });
      expect(gate).toMatchObject({ kind, ...(kind === 'auto_approved' && { threshold: own }) });
    },
  );

  it("of policy, of two people, in prod or of a critical step ignores the step's threshold", () => {
    const validation = { mode: 'per_step' };
    const flow = (more: object) =>
      Workflow.parse({ ...one, validation, steps: [{ id: 'a', ...LABEL, autoApproveThreshold: 0, ...more }] });
    const sure = { ...decided, workflow: flow({}), decision: ALLOW, confidence: 1 };
    expect(gateFor(sure).kind).toBe('auto_approved');
    const action = (more: object) => ({ ...sure, action: { ...sure.action, ...more } });
    expect(gateFor({ ...sure, workflow: flow({ critical: true }) }).kind).toBe('closed');
    expect(gateFor(action({ environment: 'prod' })).kind).toBe('closed');
    expect(gateFor(action({ blastRadius: 'high' })).kind).toBe('closed');
    const decision = { ...GROUNDS, verdict: 'needs_approval' as const, requirement: mild };
    expect(gateFor({ ...sure, decision }).kind).toBe('closed');
  });
});
