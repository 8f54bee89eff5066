import { describe, expect, it } from 'vitest';
import { assertModeFits } from '../../lambdas/api/executions/start-execution.ts';
import { VALIDATION_MODES } from '../../lambdas/run/validation-mode.ts';
import { modeIn, withRequestedMode } from '../../lambdas/workflow/requested-mode.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';

const workflow = (mode?: (typeof VALIDATION_MODES)[number]): Workflow => ({
  name: 'w',
  ...{ onFailure: 'fail', onReject: 'fail', blastRadius: 'low', approvals: {}, onDrift: 'write', steps: [] },
  ...(mode && { validation: { mode, autoApproveThreshold: 0.9 } }),
});

describe('the mode that a run was requested with', () => {
  it('never weakens that of its workflow', () => {
    for (const [strictness, own] of VALIDATION_MODES.entries()) {
      for (const [requested, mode] of VALIDATION_MODES.entries()) {
        const applied = modeIn(withRequestedMode(workflow(own), mode), 'dev');
        expect(applied).toBe(VALIDATION_MODES[Math.min(strictness, requested)]);
      }
    }
  });

  it('never weakens prod, where a workflow without a mode has per_step', () => {
    for (const mode of VALIDATION_MODES) {
      expect(modeIn(withRequestedMode(workflow(), mode), 'prod')).toBe('per_step');
      expect(modeIn(withRequestedMode(workflow(), mode), 'dev')).toBe(mode);
    }
    expect(modeIn(workflow(), 'prod')).toBe('per_step');
    expect(modeIn(workflow(), 'dev')).toBeUndefined();
  });

  it('is refused with a reason if the workflow is stricter, or final_only does not fit it', () => {
    expect(() => assertModeFits(workflow('per_step'), 'per_phase')).toThrow('has per_step, which is stricter');
    expect(() => assertModeFits({ ...workflow(), blastRadius: 'medium' }, 'final_only')).toThrow('blast radius low');
    expect(() => assertModeFits(workflow('critical_only'), 'per_step')).not.toThrow();
  });
});
