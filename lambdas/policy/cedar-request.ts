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
