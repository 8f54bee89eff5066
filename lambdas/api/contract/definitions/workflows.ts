import * as z from 'zod';
import type { PlannedCall } from '../../../plan/plan-call.ts';
import { GATE_REASONS } from '../../../run/approval.ts';
import type { Workflow } from '../../../workflow/workflow.ts';
import { route } from '../route.ts';
import { StartedRun } from '../runs/runs.ts';
import { given } from '../runs/start.ts';
import { JsonValue, json, large, PageQuery, page, RecordedError, Timestamp } from '../schemas.ts';

const WorkflowVersion = z.object({
  name: z.string(),
  version: z.int(),
  description: z.string().nullable(),
  author: z.string().nullable(),
  publishedAt: Timestamp.nullable(),
  steps: z.int().meta({ description: 'The number of steps' }),
});
WorkflowVersion.register(z.globalRegistry, { id: 'WorkflowVersion' });

const PublishedWorkflow = z.object({
  name: z.string(),
  version: z.int(),
  warnings: z.array(z.string()).meta({
    description: 'Steps whose approval nobody could give now, and commands that no list allows or no agent could run',
  }),
});

const FileProblem = z.object({ line: z.int(), path: z.string(), message: z.string() });
const workflowFile = z.string().meta({ description: 'The text of a workflow file' });
const EXAMPLE_WORKFLOW = `name: label-new-issue
steps:
  - id: label
    tool: github.labels.add
    with:
      owner: "{% trigger.owner %}"
      repo: "{% trigger.repo %}"
      number: "{% trigger.number %}"
      labels: [triage]
`;
const nameParams = z.object({ name: z.string() });

export const workflowRoutes = {
  listWorkflows: route({
    method: 'GET',
    path: '/api/v1/workflows',
    right: 'workflows:read',
    summary: 'Lists the newest version of each workflow, by name',
    query: PageQuery,
    responses: { 200: page('workflows', WorkflowVersion) },
  }),
  listWorkflowVersions: route({
    method: 'GET',
    path: '/api/v1/workflows/{name}',
    right: 'workflows:read',
    summary: 'Lists the versions of a workflow, the newest first',
    params: nameParams,
    query: PageQuery,
    responses: { 200: page('versions', WorkflowVersion).extend({ name: z.string() }) },
  }),
  getWorkflowVersion: route({
    method: 'GET',
    path: '/api/v1/workflows/{name}/versions/{version}',
    right: 'workflows:read',
    summary: 'Returns one version of a workflow with its definition',
    params: nameParams.extend({ version: z.string() }),
    responses: {
      200: WorkflowVersion.extend({
        source: z.string().nullable().meta({ description: 'The file; null for versions of older releases' }),
        definition: json<Workflow>('The workflow, with the steps of its loops and calls'),
      }),
    },
  }),
  publishWorkflow: route({
    method: 'POST',
    path: '/api/v1/workflows',
    right: 'workflows:write',
    summary: 'Publishes a workflow file: 201 for a new version, 200 if it equals the newest version',
    body: workflowFile,
    example: EXAMPLE_WORKFLOW,
    bodyType: 'application/yaml',
    responses: {
      200: PublishedWorkflow,
      201: PublishedWorkflow,
    },
  }),
  validateWorkflow: route({
    method: 'POST',
    path: '/api/v1/workflows/validate',
    right: 'workflows:read',
    summary: 'Checks a workflow file without publishing it',
    body: workflowFile,
    example: EXAMPLE_WORKFLOW,
    bodyType: 'application/yaml',
    responses: { 200: z.object({ valid: z.boolean(), problems: z.array(FileProblem) }) },
  }),
};

const SimulateBody = z.strictObject({
  workflow: z
    .union([workflowFile, z.strictObject({ name: z.string(), version: z.int().positive().optional() })])
    .meta({ description: 'A file, or a published version; without a version, the newest' }),
  source: z
    .enum(['github', 'servicenow', 'generic', 'manual'])
    .default('manual')
    .meta({ description: 'What starts the run: a webhook with this payload, or the caller' }),
  event: z.string().optional().meta({ description: 'The GitHub event. By default, as the payload shows: `issues`' }),
  sourceName: z.string().optional().meta({ description: 'The name of the source of a generic webhook' }),
  payload: JsonValue.optional().meta({ description: 'The body of the webhook' }),
  automation: z
    .string()
    .optional()
    .meta({ description: 'Policies can depend on it. By default, the automation that starts this workflow' }),
  ...given,
  save: z.boolean().default(false).meta({ description: 'Saves the plan for 24 hours, so that it can be applied' }),
});
export type SimulateBody = z.infer<typeof SimulateBody>;

const Gate = z.object({
  asks: z.enum(GATE_REASONS),
  tier: z.enum(['low', 'medium', 'high']),
  quorum: z.int(),
  groups: z.array(z.array(z.string())),
  operators: z.literal(true).optional(),
});
Gate.register(z.globalRegistry, { id: 'Gate' });
const plannedFacts = { id: z.string(), tool: z.string(), reached: z.boolean(), conditional: z.boolean() };
const PlannedStep = z.discriminatedUnion('kind', [
  z.object({ ...plannedFacts, kind: z.literal('skipped') }),
  z.object({ ...plannedFacts, kind: z.literal('inner'), input: json('The input of the step') }),
  z.object({ ...plannedFacts, kind: z.literal('gate'), gate: Gate, message: json('The message to approvers') }),
  z.object({ ...plannedFacts, kind: z.literal('failing'), error: RecordedError }),
  z.object({
    ...plannedFacts,
    kind: z.literal('call'),
    effect: z.enum(['read', 'natural', 'probe', 'opaque']),
    target: large(z.string()),
    fields: json<PlannedCall['fields']>('The values to write'),
    provisional: z.boolean().meta({ description: 'Some values are known only when the run reaches the step' }),
    risk: z.enum(['low', 'medium', 'high']),
    reversible: z.boolean(),
    destructive: z.boolean(),
    derived: json<PlannedCall['derived']>('The parts of the target that a model fills or selects'),
    decision: json<PlannedCall['decision']>('The decision of the policies'),
    outcome: z.enum(['runs', 'needs_approval', 'denied']),
    gate: Gate.nullable(),
    coveredBy: z.string().nullable().meta({ description: 'The step whose approval covers this write' }),
    madeBy: json<PlannedCall['madeBy']>('The run or step that already made the identical write'),
    before: json<PlannedCall['before']>('The current values at the target'),
    after: json<PlannedCall['after']>('The values after the write'),
    names: json<NonNullable<PlannedCall['names']>>('Names behind the values, by field and value').optional(),
    foundByName: z.array(z.string()).optional().meta({ description: 'Fields that the workflow gives by name' }),
    beforeHash: z.string().nullable(),
    unread: z.string().nullable().meta({ description: 'Why the target was not read' }),
  }),
]);
PlannedStep.register(z.globalRegistry, { id: 'PlannedStep' });

export const planRoutes = {
  simulateWorkflow: route({
    method: 'POST',
    path: '/api/v1/workflows/simulate',
    right: 'workflows:simulate',
    summary: 'Returns the plan of a run: what it would write, and which approvals it would need',
    body: SimulateBody,
    example: {
      workflow: { name: 'label-new-issue' },
      source: 'github',
      event: 'issues',
      payload: { action: 'opened', issue: { number: 7 }, repository: { full_name: 'octo-org/payments' } },
    },
    responses: {
      200: z.object({
        workflow: z.object({ name: z.string(), version: z.int() }),
        automation: z.string(),
        trigger: z.object({ source: z.string(), event: z.string() }),
        title: z.string(),
        environment: z.enum(['prod', 'staging', 'dev']),
        outcome: z.enum(['runs', 'needs_approval', 'denied', 'fails']),
        steps: z.array(PlannedStep),
        writes: z.object({ planned: z.int(), max: z.int().nullable() }),
        warnings: z.array(z.string()).meta({
          description:
            'Steps whose approval too few people can give, and commands that no list allows or no agent could run',
        }),
        plannedAt: Timestamp,
        planHash: z.string(),
        expiresAt: Timestamp.optional().meta({ description: 'Of a saved plan' }),
      }),
    },
  }),
  applyPlan: route({
    method: 'POST',
    path: '/api/v1/plans/{hash}/apply',
    right: 'runs:start',
    summary: 'Starts the run of a saved plan. It makes only the writes that the plan showed; a difference is refused',
    params: z.object({
      hash: z.string().regex(/^[0-9a-f]{64}$/, 'must be the planHash of a saved plan: 64 characters, 0-9 and a-f'),
    }),
    responses: { 200: StartedRun, 201: StartedRun },
  }),
};
