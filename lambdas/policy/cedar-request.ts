import type { Cedar } from './cedar-runtime.ts';
import type { PolicyRequest } from './policy.ts';
import { type BeforeValues, nowOf } from './policy-facts.ts';

type Question = Pick<
  Parameters<Cedar['isAuthorized']>[0],
  'principal' | 'action' | 'resource' | 'context' | 'entities'
>;

/** Converts the request to the types of policies/schema.cedarschema. */
export function cedarQuestion(request: PolicyRequest, asked: string): Question {
  const { action, workflow } = request;
  const principal = { type: 'Automation', id: request.automation };
  const resource = { type: 'Operation', id: action.tool };
  return {
    principal,
    action: { type: 'Action', id: asked },
    resource,
    context: {
      target: action.target,
      instance: action.instance,
      environment: reference('Environment', action.environment),
      blastRadius: reference('Risk', action.blastRadius),
      fields: Object.keys(action.fields),
      ...valuesIn(action.fields),
      undo: action.undo,
      ...(isKnownCommand(action) && { command: commandOf(action.fields as unknown as CommandFields) }),
      source: request.source,
      now: timeOf(request),
      trigger: { source: request.source, ...request.trigger },
      ...(request.before && { before: beforeOf(request.before) }),
      workflow: { name: workflow.name, version: workflow.version },
      writesBefore: request.writesBefore,
      makers: action.makers,
    },
    entities: [
      { uid: principal, attrs: {}, parents: [{ type: 'Workspace', id: request.workspace }] },
      {
        uid: resource,
        attrs: {
          effect: reference('Effect', action.effect),
          risk: reference('Risk', action.risk),
          reversible: action.reversible,
          destructive: action.destructive,
        },
        parents: [{ type: 'Connector', id: action.connector }],
      },
    ],
  };
}

/** The fields of a command as its connector proposes them. */
interface CommandFields {
  command: string;
  args: string[];
  environment: string;
  profile: string;
  segment?: string;
  capabilities?: string[];
  check?: boolean;
  rollback?: object;
}

/** The command of an agent. Cedar has no lists, so `line` has the arguments in their order. */
function commandOf(fields: CommandFields) {
  const { command, args, environment, profile, segment, capabilities = [], check = false, rollback } = fields;
  return {
    executable: command,
    args: distinct(args),
    line: JSON.stringify([command, ...args]),
    environment: reference('Environment', environment),
    profile,
    capabilities: distinct(capabilities),
    ...(segment !== undefined && { segment }),
    check,
    hasRollback: rollback !== undefined,
  };
}

/** In a plan, values may be unknown until the run. Policy is then asked without them, and again in the run. */
const isKnownCommand = ({ connector, fields }: PolicyRequest['action']): boolean =>
  connector === 'agent' && ENVIRONMENTS.includes(String(fields.environment)) && Array.isArray(fields.args);
const ENVIRONMENTS: readonly string[] = ['prod', 'staging', 'dev'];

function timeOf(request: PolicyRequest) {
  const { time, date, weekday, hour } = nowOf(request);
  return { time: { __extn: { fn: 'datetime', arg: time } }, date, weekday: reference('Weekday', weekday), hour };
}

function beforeOf({ fields, omitted }: BeforeValues) {
  const { values, normalizedValues } = valuesIn(fields);
  return { fields: Object.keys(fields), values, normalizedValues, omitted };
}

const reference = (type: string, id: string) => ({ __entity: { type, id } });

interface Leaf {
  name: string;
  text: string;
}

/** Every value in full: with a length limit, padding could hide a value. */
function valuesIn(fields: Record<string, unknown>) {
  const leaves = Object.entries(fields).flatMap(([name, value]) => leavesOf(name, value));
  return {
    values: distinct(leaves.map(({ name, text }) => `${name}=${text}`)),
    normalizedValues: distinct(leaves.map(({ name, text }) => `${name}=${normalized(text)}`)),
    longestValue: leaves.reduce((longest, { text }) => Math.max(longest, text.length), 0),
  };
}

const distinct = (texts: string[]) => [...new Set(texts)];

/** List elements get the name of the list, nested values their path. */
function leavesOf(name: string, value: unknown): Leaf[] {
  if (Array.isArray(value)) {
    return value.length === 0 ? [{ name, text: '[]' }] : value.flatMap((element) => leavesOf(name, element));
  }
  if (typeof value === 'object' && value !== null) {
    const inner = Object.entries(value);
    return inner.length === 0
      ? [{ name, text: '{}' }]
      : inner.flatMap(([key, each]) => leavesOf(`${name}.${key}`, each));
  }
  return [{ name, text: String(value) }];
}

/** Control, format and invisible characters. */
const INVISIBLE = /(?!\s)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Targets may treat different spellings as equal: this removes padding, case, character width and invisible characters. */
export const normalized = (text: string): string =>
  text.normalize('NFKC').replace(INVISIBLE, '').replace(/\s+/gu, ' ').trim().toLowerCase();
