import type { PolicyRequest, ProposedAction } from '../../lambdas/policy/policy.ts';

/** A small, harmless write; a test says only what differs. */
export function aRequest(
  action: Partial<ProposedAction> = {},
  run: Partial<Omit<PolicyRequest, 'action'>> = {},
): PolicyRequest {
  return {
    tenant: 'acme',
    automation: 'triage-incident',
    workspace: 'default',
    workflow: { name: 'triage-incident', version: 3 },
    source: 'servicenow',
    writesBefore: 0,
    at: '2026-01-07T12:00:00.000Z',
    trigger: { event: 'incident.insert' },
    ...run,
    action: {
      tool: 'servicenow.incident.update',
      connector: 'servicenow',
      instance: 'acme',
      target: 'servicenow:acme:incident:9d38',
      fields: { assignment_group: 'network' },
      effect: 'natural',
      risk: 'low',
      blastRadius: 'low',
      environment: 'dev',
      destructive: false,
      reversible: true,
      undo: false,
      makers: ['servicenow:ana.m'],
      ...action,
    },
  };
}
