import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import * as z from 'zod';
import { Problem } from '../../../lambdas/entry/http.ts';
import { type Sample, sampleTrigger } from '../../../lambdas/intake/sample-trigger.ts';
import { GenericSource } from '../../../lambdas/pipeline/generic-source.ts';
import { type Plan, type PlannedStep, type Planner, planRun } from '../../../lambdas/plan/plan.ts';
import type { Policy } from '../../../lambdas/policy/policy.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import { NO_SETTINGS } from '../../../lambdas/run/settings/caps.ts';
import type { Expressions } from '../../../lambdas/workflow/expressions/expressions.ts';
import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { EXIT, Failure } from '../failure.ts';
import { readFile } from '../read-file.ts';
import type { ExpectedStep, WorkflowCase } from './test-file.ts';

export interface TryingPorts {
  policy: Policy;
  expressions: Expressions;
}

export interface Difference {
  /** `steps.label.fields.labels`. */
  path: string;
  expected: unknown;
  got: unknown;
}

export interface TriedCase {
  name: string;
  wrong: Difference[];
  plan?: Plan;
}

const TENANT = 'test';
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

/** Plans the run of a case without a host, and compares the plan with what the case expects. */
export async function tryCase(
  ports: TryingPorts,
  file: string,
  workflow: Workflow,
  given: WorkflowCase,
): Promise<TriedCase> {
  const { name, expect } = given;
  const unknown = Object.keys({ ...expect.steps, ...given.targets }).filter(
    (id) => !workflow.steps.some((step) => step.id === id),
  );
  if (unknown.length > 0) {
    const wrong = unknown.map((id) => ({
      path: `steps.${id}`,
      expected: 'a step of the workflow',
      got: 'no such step',
    }));
    return { name, wrong };
  }
  const sample = sampleOf(file, workflow, given);
  try {
    const { trigger } = await sampleTrigger({ tenant: TENANT, expressions: ports.expressions }, sample);
    const plan = await planRun(plannerOf(ports, given), {
      tenant: TENANT,
      automation: workflow.name,
      workspace: 'default',
      workflow,
      version: 1,
      trigger: { ...trigger, receivedAt: new Date(given.at).toISOString() },
      inputs: { given: given.inputs },
      stubs: given.targets,
    });
    return { name, wrong: differencesOf(expect, plan), plan };
  } catch (error) {
    if (!(error instanceof CountersignError || error instanceof Problem)) throw error;
    const same = expect.error !== undefined && 'code' in error && error.code === expect.error;
    const got = `${'code' in error ? error.code : 'error'}: ${error.message}`;
    return { name, wrong: same ? [] : [{ path: 'error', expected: expect.error ?? 'none', got }] };
  }
}

function plannerOf({ policy, expressions }: TryingPorts, { environment, at }: WorkflowCase): Planner {
  return {
    definitions: {
      settings: async () => NO_SETTINGS,
      connection: async (_tenant, name) => ({ name, baseUrl: 'https://target.invalid', instance: TENANT }),
      people: async () => [],
    },
    connections: {
      open: async () => {
        throw new Error('a test reads no target');
      },
    },
    runs: { receipts: async () => [] },
    expressions,
    policy,
    environment,
    region: 'test',
    clock: { now: () => Date.parse(at) },
    log: SILENT,
    hasTime: () => true,
  };
}

/** A file that the case names, relative to the file of the case. */
type ReadFile = (name: string) => z.core.util.JSONType;

/** What starts the run of the case: its event, or a person with its inputs. */
function sampleOf(file: string, workflow: Workflow, { event, inputs, at }: WorkflowCase): Sample {
  const content: ReadFile = (name) => contentOf(join(dirname(file), name));
  if (typeof event === 'string') return { source: sourceOfFile(event), payload: content(event) };
  switch (event.source) {
    case 'generic':
      return { ...event, definition: sourceDefinition(event.definition, content) };
    case 'api':
    case 'manual':
      return { ...event, automation: workflow.name, inputs };
    case 'schedule': {
      const { name, slot = at, title, makers } = event;
      return { source: 'schedule', schedule: { name, title, inputs: inputs as JsonObject, makers }, slot };
    }
    default:
      return event;
  }
}

type JsonObject = Record<string, z.core.util.JSONType>;

/** The name of an event file begins with its source, like the files in events/. */
function sourceOfFile(path: string) {
  const source = (['github', 'servicenow'] as const).find((each) => basename(path).startsWith(`${each}-`));
  if (source) return source;
  const detail = 'its name must begin with github- or servicenow-; or write the event as { source: …, payload: … }';
  throw new Failure(EXIT.usage, `${path}: ${detail}`);
}

function sourceDefinition(given: string | GenericSource, content: ReadFile): GenericSource {
  if (typeof given !== 'string') return given;
  const read = GenericSource.safeParse(content(given));
  if (read.success) return read.data;
  throw new Failure(EXIT.usage, `${given} is not a webhook source: ${z.prettifyError(read.error)}`);
}

/** JSON is YAML too. */
function contentOf(path: string): z.core.util.JSONType {
  try {
    return parse(readFile(path).toString('utf8')) as z.core.util.JSONType;
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure(EXIT.usage, `${path}: ${(cause as Error).message}`, { cause });
  }
}

function differencesOf(expect: WorkflowCase['expect'], plan: Plan): Difference[] {
  const wrong: Difference[] = [];
  const compare = (path: string, expected: unknown, got: unknown) => {
    if (expected !== undefined && !isDeepStrictEqual(plain(expected), plain(got))) wrong.push({ path, expected, got });
  };
  compare('outcome', expect.outcome, plan.outcome);
  compare('error', expect.error, undefined);
  compare('writes', expect.writes, plan.writes.planned);
  for (const [id, expected] of Object.entries(expect.steps)) {
    const wanted: ExpectedStep = typeof expected === 'string' ? { outcome: expected } : expected;
    const { policies, fields, after, ...exact } = wanted;
    const got = shownStep(plan.steps.find((step) => step.id === id));
    for (const [name, value] of Object.entries(exact))
      compare(`steps.${id}.${name}`, value, got[name as keyof typeof got]);
    for (const [part, values, of] of [['fields', fields, got.fields] as const, ['after', after, got.after] as const]) {
      for (const [name, value] of Object.entries(values ?? {}))
        compare(`steps.${id}.${part}.${name}`, value, of?.[name]);
    }
    const missing = policies?.filter((policy) => !got.policies?.includes(policy)) ?? [];
    if (missing.length > 0) wrong.push({ path: `steps.${id}.policies`, expected: policies, got: got.policies });
  }
  return wrong;
}

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

type Shown = { [Field in keyof ExpectedStep]?: unknown } & {
  fields?: Record<string, unknown>;
  after?: Record<string, unknown>;
  policies?: readonly string[];
};

/** A planned step in the words of a case. A step of a loop that the plan does not list is skipped. */
function shownStep(step: PlannedStep | undefined): Shown {
  if (!step || step.kind === 'skipped') return { outcome: 'skipped' };
  if (step.kind === 'failing') return { outcome: 'fails', error: step.error.code };
  if (!step.reached) return { outcome: 'not_reached' };
  if (step.kind === 'inner') return { outcome: 'runs', input: step.input };
  if (step.kind === 'gate') return { outcome: 'needs_approval', ...step.gate };
  const { outcome, target, fields, after, decision, gate } = step;
  return { outcome, target, fields, ...(after && { after }), policies: decision.policies, ...gate };
}
