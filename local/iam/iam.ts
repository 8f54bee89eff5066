import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import {
  arnLike,
  type Condition,
  type ConditionContext,
  evaluateConditions,
  parseConditions,
  wildcardMatches,
} from './conditions.ts';

export interface AccessRequest {
  roleLogicalId: string;
  /** Named in the message of a denial. */
  caller: string;
  action: string;
  /** Several: one allowed resource is enough. */
  resource: string | string[];
  context?: ConditionContext;
}

export type Decision = { allowed: true } | { allowed: false; message: string };

interface Invoker {
  principal: string;
  sourceArn: string;
  roleArn?: string | undefined;
}

export interface UnusedGrant {
  role: string;
  action: string;
  resources: string[];
}

interface Statement {
  effect: 'Allow' | 'Deny';
  actions: string[];
  resources: string[];
  conditions: Condition[];
}

/** The statements that are for this action on this resource. */
type Matching = (action: string, resource: string) => Statement[];

interface RoleGrants {
  statements: Statement[];
  matching: Matching;
  used: Map<Statement, Set<string>>;
}

/** The services whose calls are checked here. The use of a grant for another service (logs, X-Ray) cannot be seen. */
const OBSERVED_SERVICES = ['dynamodb', 'sqs', 's3', 'states', 'secretsmanager', 'kms', 'execute-api'];

/** Enforces the roles of the template, so that a missing grant fails here and not in production. */
export class Iam {
  readonly #roles = new Map<string, RoleGrants>();
  readonly #permissions: readonly ResolvedResource[];
  readonly #bucketDenials: Matching;
  readonly #stack: ResolvedStack;

  constructor(stack: ResolvedStack) {
    this.#stack = stack;
    this.#permissions = stack.ofType('AWS::Lambda::Permission');
    this.#bucketDenials = matchingOf(stack.ofType('AWS::S3::BucketPolicy').flatMap(denialsOf));
    for (const role of stack.ofType('AWS::IAM::Role')) {
      const statements = statementsOf(role);
      this.#roles.set(role.logicalId, { statements, matching: matchingOf(statements), used: new Map() });
    }
  }

  /** A denial names the missing grant. */
  authorize(request: AccessRequest): Decision {
    const { roleLogicalId, action, resource, context = {} } = request;
    const grants = this.#roles.get(roleLogicalId);
    if (!grants) return denied(request, `the template has no role ${roleLogicalId}`);
    let reason: string | undefined;
    for (const each of typeof resource === 'string' ? [resource] : resource) {
      const evaluation = evaluateStatements(grants.matching(action, each), context);
      if (evaluation.allowed) {
        recordUse(grants, evaluation.by, action);
        return { allowed: true };
      }
      reason ??= evaluation.reason;
    }
    return denied(request, reason ?? 'the call names no resource');
  }

  /** Why a bucket policy denies a call, for every caller. Its Allow statements are for other AWS services and are ignored. */
  deniedByBucket({ action, resource, context = {} }: Pick<AccessRequest, 'action' | 'resource' | 'context'>) {
    const isDenied = (typeof resource === 'string' ? [resource] : resource).some((each) => {
      const denials = this.#bucketDenials(action, each);
      return denials.length > 0 && !evaluateStatements([...denials, EVERYTHING], context).allowed;
    });
    return isDenied ? `the bucket policy denies ${action} on ${[resource].flat().join(' and ')}` : undefined;
  }

  /** Grants that no call has used since the start. */
  unusedGrants(): UnusedGrant[] {
    return [...this.#roles].flatMap(([role, { statements, used }]) =>
      statements
        .filter((statement) => statement.effect === 'Allow')
        .flatMap((statement) =>
          statement.actions
            .filter((action) => OBSERVED_SERVICES.includes(action.split(':')[0] ?? ''))
            .filter((action) => !used.get(statement)?.has(action))
            .map((action) => ({ role, action, resources: statement.resources })),
        ),
    );
  }

  /** Whether an AWS service may invoke the function: with a role, or by the AWS::Lambda::Permission resources. */
  mayInvoke(functionArn: string, { principal, sourceArn, roleArn }: Invoker): Decision {
    if (roleArn !== undefined) return this.#mayInvokeAs(roleArn, functionArn, principal);
    const permitted = this.#permissions.some(
      ({ properties }) =>
        properties.FunctionName === functionArn &&
        properties.Principal === principal &&
        properties.Action === 'lambda:InvokeFunction' &&
        arnLike(sourceArn, String(properties.SourceArn)),
    );
    if (permitted) return { allowed: true };
    const name = this.#stack.byArn(functionArn)?.logicalId ?? functionArn;
    return {
      allowed: false,
      message: `${principal} is not authorized to perform lambda:InvokeFunction on ${name} for ${sourceArn}: no AWS::Lambda::Permission grants it`,
    };
  }

  /** The service must be allowed to assume the role, and the role to invoke the function. */
  #mayInvokeAs(roleArn: string, functionArn: string, principal: string): Decision {
    const role = this.#stack.byArn(roleArn);
    if (!role || !mayAssume(role, principal)) {
      return { allowed: false, message: `${principal} is not authorized to assume the role ${roleArn}` };
    }
    const action = 'lambda:InvokeFunction';
    return this.authorize({ roleLogicalId: role.logicalId, caller: principal, action, resource: functionArn });
  }
}

function denied({ caller, action, resource }: AccessRequest, reason: string): Decision {
  const message = `${caller} is not authorized to perform ${action} on ${[resource].flat().join(' or ')}: ${reason}`;
  return { allowed: false, message };
}

function mayAssume({ properties }: ResolvedResource, principal: string): boolean {
  const { Statement: list = [] } = (properties.AssumeRolePolicyDocument ?? {}) as {
    Statement?: { Effect: string; Action: string; Principal?: { Service?: string } }[];
  };
  return list.some(
    ({ Effect, Action, Principal }) =>
      Effect === 'Allow' && Action === 'sts:AssumeRole' && Principal?.Service === principal,
  );
}

type Evaluation = { allowed: true; by: Statement } | { allowed: false; reason: string };

const EVERYTHING: Statement = { effect: 'Allow', actions: ['*'], resources: ['*'], conditions: [] };

/** Resources of each role. Objects of buckets have different names, so what was found is forgotten at some point. */
const FOUND_MAX = 1_000;

/** Finds the statements once: a function makes the same few calls again and again, mostly on the same resources. */
function matchingOf(statements: Statement[]): Matching {
  const found = new Map<string, Map<string, Statement[]>>();
  return (action, resource) => {
    const byAction = found.get(resource);
    const known = byAction?.get(action);
    if (known) return known;
    const matching = statements.filter(
      ({ actions, resources }) =>
        actions.some((pattern) => wildcardMatches(pattern, action, 'i')) &&
        resources.some((pattern) => wildcardMatches(pattern, resource)),
    );
    if (found.size >= FOUND_MAX) found.clear();
    found.set(resource, (byAction ?? new Map<string, Statement[]>()).set(action, matching));
    return matching;
  };
}

/** In the order of IAM: a matching Deny wins, then any matching Allow; otherwise the call is denied. All are for the action and the resource. */
function evaluateStatements(statements: Statement[], context: ConditionContext): Evaluation {
  let allowedBy: Statement | undefined;
  let failedCondition: string | undefined;
  for (const statement of statements) {
    const conditions = evaluateConditions(statement.conditions, context);
    if (statement.effect === 'Deny') {
      // A Deny with an unknown condition denies.
      if (conditions.matches || conditions.unknown)
        return { allowed: false, reason: 'a statement denies it explicitly' };
    } else if (conditions.matches) allowedBy ??= statement;
    else failedCondition = `a statement grants it only under a condition: ${conditions.reason}`;
  }
  if (allowedBy) return { allowed: true, by: allowedBy };
  return { allowed: false, reason: failedCondition ?? 'no statement of its role grants it' };
}

/** Parses a resolved policy document. Refuses elements that this class does not support. */
function parseStatements(document: unknown, where: string): Statement[] {
  const { Statement: list } = (document ?? {}) as { Statement?: unknown };
  return [list ?? []].flat().map((raw) => {
    const statement = raw as Record<string, unknown>;
    const unsupported = ['NotAction', 'NotResource'].find((element) => element in statement);
    if (unsupported) throw new Error(`${where}: the local host does not support ${unsupported}`);
    return {
      effect: statement.Effect === 'Allow' ? 'Allow' : 'Deny',
      actions: [statement.Action ?? []].flat().map(String),
      resources: [statement.Resource ?? []].flat().map(String),
      conditions: parseConditions(statement.Condition),
    };
  });
}

function denialsOf({ logicalId, properties }: ResolvedResource): Statement[] {
  const { Statement: list } = (properties.PolicyDocument ?? {}) as {
    Statement?: { Effect: string; Principal: unknown }[];
  };
  const denials = (list ?? []).filter(({ Effect }) => Effect === 'Deny');
  for (const { Principal } of denials) {
    if ((Principal as { AWS?: unknown } | null)?.AWS !== '*') {
      throw new Error(`${logicalId}: the local host supports only denials for every principal ({"AWS": "*"})`);
    }
  }
  return parseStatements({ Statement: denials }, logicalId);
}

/** Policies are part of the role. Managed policies are refused. */
function statementsOf(role: ResolvedResource): Statement[] {
  if ('ManagedPolicyArns' in role.properties) {
    throw new Error(`${role.logicalId}: the local host does not support ManagedPolicyArns`);
  }
  const inline = (role.properties.Policies ?? []) as { PolicyDocument: unknown }[];
  return inline.flatMap(({ PolicyDocument }) => parseStatements(PolicyDocument, role.logicalId));
}

function recordUse(grants: RoleGrants, statement: Statement, action: string): void {
  const used = grants.used.get(statement) ?? new Set();
  if (used.size < statement.actions.length) {
    for (const pattern of statement.actions) if (wildcardMatches(pattern, action, 'i')) used.add(pattern);
  }
  grants.used.set(statement, used);
}
