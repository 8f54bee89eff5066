import { inject } from 'vitest';
import { readAssembly } from '../../local/template/synthesize.ts';
import { resolveTemplate } from '../../local/template/template.ts';

export const STAGES = ['local', 'acme-prod'] as const;
export type Stage = (typeof STAGES)[number];

export interface Statement {
  /** The logical id of its role. */
  role: string;
  actions: string[];
  resources: string[];
  leadingKeys: string[] | undefined;
}

/** A stage as it was synthesized for this test run, with every reference resolved. */
export function synthesized(stage: Stage) {
  const { template, stackName } = readAssembly(inject('assemblies')[stage], stage);
  const stack = resolveTemplate(template, { stackName });
  const properties = (type: string) => stack.ofType(type).map((resource) => resource.properties);
  return { template, stack, properties, statements: statementsOf(stack) };
}

/** Every statement of every role that allows something. */
export function statementsOf(stack: ReturnType<typeof resolveTemplate>): Statement[] {
  const policies = stack.ofType('AWS::IAM::Role').flatMap(({ logicalId, properties }) => {
    if (properties.ManagedPolicyArns) throw new Error(`${logicalId} has managed policies, which nobody here checks`);
    const inline = (properties.Policies ?? []) as { PolicyDocument: unknown }[];
    return inline.map(({ PolicyDocument }) => ({ role: logicalId, document: PolicyDocument }));
  });
  return policies.flatMap(({ role, document }) =>
    (document as { Statement: RawStatement[] }).Statement.filter(({ Effect }) => Effect === 'Allow').map((raw) => ({
      role,
      actions: [raw.Action].flat(),
      resources: [raw.Resource].flat(),
      leadingKeys: raw.Condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'],
    })),
  );
}

interface RawStatement {
  Effect: string;
  Action: string | string[];
  Resource: string | string[];
  Condition?: { 'ForAllValues:StringLike'?: { 'dynamodb:LeadingKeys'?: string[] } };
}
