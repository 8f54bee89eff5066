import { ACCOUNT, REGION } from '../aws/aws.ts';
import { refuseCircularDependencies } from './circular-dependencies.ts';
import { type HostUrls, identify, SUPPORTED_TYPES } from './resource-types.ts';

export interface CloudFormationTemplate {
  Resources?: Record<string, TemplateResource>;
  Outputs?: Record<string, { Value: unknown }>;
}

export interface TemplateResource {
  Type: string;
  Properties?: Record<string, unknown>;
  DependsOn?: string | string[];
  Metadata?: Record<string, unknown>;
}

interface ResolveOptions extends Partial<HostUrls> {
  stackName: string;
}

/** A resource whose intrinsic functions are replaced by their values. */
export interface ResolvedResource {
  logicalId: string;
  type: string;
  /** The value of `Ref`. */
  ref: string;
  /** `''` for the few types without one. */
  arn: string;
  attributes: Record<string, string>;
  properties: Record<string, unknown>;
}

export interface ResolvedStack {
  stackName: string;
  resources: ReadonlyMap<string, ResolvedResource>;
  outputs: Record<string, unknown>;
  ofType(type: string): readonly ResolvedResource[];
  byArn(arn: string): ResolvedResource | undefined;
}

const UNSET_URL = 'http://127.0.0.1:0';

const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': ACCOUNT,
  'AWS::Region': REGION,
  'AWS::Partition': 'aws',
  'AWS::URLSuffix': 'amazonaws.com',
};

/** Resolves the template as CloudFormation does. Refuses what the local host does not support, all of it in one message. */
export function resolveTemplate(template: CloudFormationTemplate, options: ResolveOptions): ResolvedStack {
  const resolver = new Resolver(template, options);
  const all = template.Resources ?? {};
  refuseUnsupported(all);
  refuseCircularDependencies(all);
  const resources = new Map(
    Object.entries(all).map(([logicalId, resource]) => [logicalId, resolver.resource(logicalId, resource)]),
  );
  const outputs = Object.entries(template.Outputs ?? {}).map(([name, { Value }]) => [
    name,
    resolver.value(Value, `Outputs.${name}`),
  ]);
  const byArn = new Map([...resources.values()].map((resource) => [resource.arn, resource]));
  const byType = Map.groupBy(resources.values(), ({ type }) => type);
  return {
    stackName: options.stackName,
    resources,
    outputs: Object.fromEntries(outputs),
    ofType: (type) => byType.get(type) ?? [],
    byArn: (arn) => (arn === '' ? undefined : byArn.get(arn)),
  };
}

function refuseUnsupported(resources: Record<string, TemplateResource>): void {
  const unsupported = Object.entries(resources).filter(([, { Type }]) => !SUPPORTED_TYPES.has(Type));
  if (unsupported.length === 0) return;
  const list = unsupported.map(([logicalId, { Type }]) => `  ${logicalId} (${Type})`).join('\n');
  throw new Error(`the local host does not support these resources of the template:\n${list}`);
}

class Resolver {
  readonly #template: CloudFormationTemplate;
  readonly #options: ResolveOptions;

  constructor(template: CloudFormationTemplate, options: ResolveOptions) {
    this.#template = template;
    this.#options = options;
  }

  resource(logicalId: string, resource: TemplateResource): ResolvedResource {
    if ('Condition' in resource) throw new Error(`${logicalId}: the local host does not support conditions`);
    const { ref, attributes } = this.#identity(logicalId, resource);
    const properties = this.value(resource.Properties ?? {}, logicalId) as Record<string, unknown>;
    const arn = attributes.Arn ?? (ref.startsWith('arn:') ? ref : '');
    return { logicalId, type: resource.Type, ref, arn, attributes, properties };
  }

  /** `where` is for error messages. */
  value(value: unknown, where: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.value(item, where));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [first] = entries;
    if (entries.length === 1 && first && (first[0] === 'Ref' || first[0].startsWith('Fn::'))) {
      return this.#intrinsic(first[0], first[1], where);
    }
    return Object.fromEntries(entries.map(([key, item]) => [key, this.value(item, `${where}.${key}`)]));
  }

  #intrinsic(name: string, argument: unknown, where: string): unknown {
    switch (name) {
      case 'Ref':
        return this.#ref(String(argument), where);
      case 'Fn::GetAtt':
        return this.#attribute(argument as [string, string], where);
      case 'Fn::Join': {
        const [separator, parts] = this.value(argument, where) as [string, string[]];
        return parts.join(separator);
      }
      case 'Fn::Sub':
        return String(argument).replace(/\$\{([^}]+)\}/g, (_match, name: string) => this.#ref(name, where));
      default:
        throw new Error(`${where}: the local host does not support ${name}`);
    }
  }

  #ref(name: string, where: string): string {
    const resource = this.#template.Resources?.[name];
    const value = PSEUDO_PARAMETERS[name] ?? (resource && this.#identity(name, resource).ref);
    if (value === undefined) throw new Error(`${where} refers to ${name}, which the template does not have`);
    return value;
  }

  #attribute([logicalId, attribute]: [string, string], where: string): string {
    const resource = this.#template.Resources?.[logicalId];
    if (!resource) throw new Error(`${where} refers to ${logicalId}, which the template does not have`);
    const value = this.#identity(logicalId, resource).attributes[attribute];
    if (value === undefined) {
      throw new Error(`${where}: the local host does not support the attribute ${attribute} of ${resource.Type}`);
    }
    return value;
  }

  #identity(logicalId: string, resource: TemplateResource) {
    const { awsEndpointUrl = UNSET_URL, hostUrl = UNSET_URL, stackName } = this.#options;
    return identify({
      awsEndpointUrl,
      hostUrl,
      stackName,
      logicalId,
      type: resource.Type,
      property: (name) => this.value(resource.Properties?.[name], `${logicalId}.${name}`),
    });
  }
}
