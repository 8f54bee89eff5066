import { ACCOUNT, REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import {
  arnLike,
  type ConditionBlock,
  type ConditionContext,
  evaluateConditions,
  wildcardMatches,
} from './conditions.ts';

export interface AccessRequest {
  roleLogicalId: string;
  /** Who asks, for the message; the role if not given. */
  caller?: string;
  action: string;
  /** Several: being allowed on any one of them is enough. */
  resource: string | string[];
  context?: ConditionContext;
}

export type Decision = { allowed: true } | { allowed: false; message: string };

export interface UnusedGrant {
  role: string;
  action: string;
  resources: string[];
}

export interface Statement {
  effect: 'Allow' | 'Deny';
  actions: string[];
  resources: string[];
  conditions: ConditionBlock;
}

interface RoleGrants {
  statements: Statement[];
  used: Map<Statement, Set<string>>;
}

/** Only calls to these services pass the gateway; a grant for logs or traces can never be seen to be used. */
const OBSERVED_SERVICES = ['dynamodb', 'sqs', 's3', 'states', 'secretsmanager', 'kms', 'execute-api'];

/** In AWS every one of these calls goes over TLS; the loopback interface stands in for it. */
const EVERY_REQUEST: ConditionContext = { 'aws:SecureTransport': 'true' };

/** The roles of the template, enforced: a call that a function's role does not grant fails here, not in production. */
export class Iam {
  readonly #roles = new Map<string, RoleGrants>();
  readonly #permissions: ResolvedResource[];
  readonly #bucketDenials: Statement[];
  readonly #stack: ResolvedStack;

  constructor(stack: ResolvedStack) {
    this.#stack = stack;
    this.#permissions = stack.ofType('AWS::Lambda::Permission');
    this.#bucketDenials = stack.ofType('AWS::S3::BucketPolicy').flatMap(denialsOf);
    for (const role of stack.ofType('AWS::IAM::Role')) {
      const statements = policiesOf(role, stack).flatMap(({ where, document }) => parseStatements(document, where));
      this.#roles.set(role.logicalId, { statements, used: new Map() });
    }
  }

  /** Allowed, or a denial that names the grant which is missing. */
  authorize({ roleLogicalId, caller = roleLogicalId, action, resource, context = {} }: AccessRequest): Decision {
    const grants = this.#roles.get(roleLogicalId);
    const refused = (reason: string): Decision => ({
      allowed: false,
      message: `${caller} is not authorized to perform ${action} on ${[resource].flat().join(' or ')}: ${reason}`,
    });
    if (!grants) return refused(`the template has no role ${roleLogicalId}`);
    const fullContext = { ...this.#everyRequest(roleLogicalId), ...context };
    const reasons: string[] = [];
    for (const each of [resource].flat()) {
      const evaluation = evaluateStatements(grants.statements, action, each, fullContext);
      if (evaluation.allowed) {
        noteUse(grants, evaluation.by, action);
        return { allowed: true };
      }
      reasons.push(evaluation.reason);
    }
    return refused(reasons[0] ?? 'no resource was named');
  }

  /** Why a bucket's own policy denies a call, whoever makes it. What it allows to others is of no concern here. */
  deniedByBucket({ action, resource, context = {} }: Pick<AccessRequest, 'action' | 'resource' | 'context'>) {
    const fullContext = { ...EVERY_REQUEST, ...context };
    const everything: Statement = { effect: 'Allow', actions: ['*'], resources: ['*'], conditions: {} };
    const statements = [...this.#bucketDenials, everything];
    const isDenied = [resource]
      .flat()
      .some((each) => !evaluateStatements(statements, action, each, fullContext).allowed);
    return isDenied ? `the policy of the bucket denies ${action} on ${[resource].flat().join(' and ')}` : undefined;
  }

  /** Grants that no call has needed so far: candidates for removal, once everything has been exercised. */
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

  /** Whether an AWS service may invoke the function, by the AWS::Lambda::Permission resources. */
  mayInvoke(functionArn: string, { principal, sourceArn }: { principal: string; sourceArn: string }): Decision {
    const target = this.#stack.byArn(functionArn);
    const permitted = this.#permissions.some(({ properties }) => {
      const named = String(properties.FunctionName);
      return (
        (named === functionArn || named === target?.ref) &&
        properties.Principal === principal &&
        wildcardMatches(String(properties.Action), 'lambda:InvokeFunction', 'i') &&
        (properties.SourceAccount === undefined || properties.SourceAccount === ACCOUNT) &&
        (properties.SourceArn === undefined || arnLike(sourceArn, String(properties.SourceArn)))
      );
    });
    if (permitted) return { allowed: true };
    const name = target?.logicalId ?? functionArn;
    return {
      allowed: false,
      message: `${principal} is not authorized to perform lambda:InvokeFunction on ${name} for ${sourceArn}: no AWS::Lambda::Permission grants it`,
    };
  }

  #everyRequest(roleLogicalId: string): ConditionContext {
    return {
      ...EVERY_REQUEST,
      'aws:PrincipalAccount': ACCOUNT,
      'aws:ResourceAccount': ACCOUNT,
      'aws:PrincipalArn': this.#stack.resources.get(roleLogicalId)?.arn ?? '',
      'aws:RequestedRegion': REGION,
    };
  }
}

export type Evaluation = { allowed: true; by: Statement } | { allowed: false; reason: string };

/** IAM's order: an explicit deny wins, then any allow, else no. */
export function evaluateStatements(
  statements: Statement[],
  action: string,
  resource: string,
  context: ConditionContext,
): Evaluation {
  let allowedBy: Statement | undefined;
  let nearMiss: string | undefined;
  for (const statement of statements) {
    if (!statement.actions.some((pattern) => wildcardMatches(pattern, action, 'i'))) continue;
    if (!statement.resources.some((pattern) => wildcardMatches(pattern, resource))) continue;
    const conditions = evaluateConditions(statement.conditions, context);
    if (statement.effect === 'Deny') {
      // Fail closed: a deny whose condition we cannot judge denies.
      if (conditions.matches || conditions.unknown)
        return { allowed: false, reason: 'a statement denies it explicitly' };
    } else if (conditions.matches) allowedBy ??= statement;
    else nearMiss = `a statement grants it only under a condition that does not hold: ${conditions.reason}`;
  }
  if (allowedBy) return { allowed: true, by: allowedBy };
  return { allowed: false, reason: nearMiss ?? 'no statement of its role grants it' };
}

/** Parses a policy document whose intrinsics are resolved; refuses what it would otherwise misread. */
export function parseStatements(document: unknown, where: string): Statement[] {
  const { Statement: list } = (document ?? {}) as { Statement?: unknown };
  return [list ?? []].flat().map((raw) => {
    const statement = raw as Record<string, unknown>;
    const unsupported = ['NotAction', 'NotResource'].find((element) => element in statement);
    if (unsupported)
      throw new Error(`${where} uses ${unsupported}, which the local host does not support: list what is meant`);
    return {
      effect: statement.Effect === 'Allow' ? 'Allow' : 'Deny',
      actions: [statement.Action ?? []].flat().map(String),
      resources: [statement.Resource ?? []].flat().map(String),
      conditions: (statement.Condition ?? {}) as ConditionBlock,
    };
  });
}

function denialsOf({ logicalId, properties }: ResolvedResource): Statement[] {
  const { Statement: list } = (properties.PolicyDocument ?? {}) as {
    Statement?: { Effect: string; Principal: unknown }[];
  };
  const denials = (list ?? []).filter(({ Effect }) => Effect === 'Deny');
  for (const { Principal } of denials) {
    const whom = typeof Principal === 'object' ? (Principal as { AWS?: unknown } | null)?.AWS : Principal;
    if (whom !== '*')
      throw new Error(`${logicalId} denies something to some only, which the local host does not support`);
  }
  return parseStatements({ Statement: denials }, logicalId);
}

function policiesOf(role: ResolvedResource, stack: ResolvedStack): { where: string; document: unknown }[] {
  const inline = (role.properties.Policies ?? []) as { PolicyName: string; PolicyDocument: unknown }[];
  const managed = [role.properties.ManagedPolicyArns ?? []].flat().map(String);
  const attached = stack
    .ofType('AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy')
    .filter((policy) => [policy.properties.Roles ?? []].flat().includes(role.ref) || managed.includes(policy.arn));
  return [
    ...inline.map((policy) => ({ where: `${role.logicalId} (${policy.PolicyName})`, document: policy.PolicyDocument })),
    ...attached.map((policy) => ({ where: policy.logicalId, document: policy.properties.PolicyDocument })),
  ];
}

function noteUse(grants: RoleGrants, statement: Statement, action: string): void {
  const used = grants.used.get(statement) ?? new Set();
  for (const pattern of statement.actions) if (wildcardMatches(pattern, action, 'i')) used.add(pattern);
  grants.used.set(statement, used);
}
