import { isWeaker, type ValidationMode } from '../run/validation-mode.ts';
import type { Workflow } from './workflow.ts';

/** The workflow as a run performs it that was requested with a mode. */
export function withRequestedMode<Given extends Workflow>(workflow: Given, mode: ValidationMode | undefined): Given {
  const own = workflow.validation?.mode;
  if (mode === undefined || mode === own || (own !== undefined && isWeaker(mode, own))) return workflow;
  return { ...workflow, validation: { ...workflow.validation, mode, ...(own === undefined && { isRequested: true }) } };
}

/**
 * The mode that applies to writes in an environment. In prod, a workflow without a mode has `per_step`, and a request cannot
 * weaken that.
 */
export function modeIn({ validation }: Pick<Workflow, 'validation'>, environment: string): ValidationMode | undefined {
  if (environment === 'prod' && (validation === undefined || validation.isRequested)) return 'per_step';
  return validation?.mode;
}
