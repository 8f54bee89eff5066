import type { Cedar } from './cedar-runtime.ts';
import type { PolicyRequest } from './policy.ts';

/** A policy compares values with short texts of its own; nobody needs a whole comment for that. */
const VALUE_MAX_CHARACTERS = 200;

type Question = Pick<
  Parameters<Cedar['isAuthorized']>[0],
  'principal' | 'action' | 'resource' | 'context' | 'entities'
>;

/** The request in the words of policies/schema.cedarschema. */
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
      values: valuesOf(action.fields),
      undo: action.undo,
      source: request.source,
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

const reference = (type: string, id: string) => ({ __entity: { type, id } });

function valuesOf(fields: Record<string, unknown>): string[] {
  return Object.entries(fields).flatMap(([name, value]) => leaves(name, value));
}

/** `state=7`; the elements of a list under the name of the list, what is nested under its path. */
function leaves(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((element) => leaves(name, element));
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([inner, each]) => leaves(`${name}.${inner}`, each));
  }
  const text = String(value);
  return text.length > VALUE_MAX_CHARACTERS ? [] : [`${name}=${text}`];
}
