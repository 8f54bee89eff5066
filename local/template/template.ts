import { ACCOUNT, REGION } from '../aws/aws.ts';
import { type HostUrls, identify, SUPPORTED_TYPES } from './resource-types.ts';
import { refuseCycles } from './template-references.ts';

export interface CloudFormationTemplate {
  Resources?: Record<string, TemplateResource>;
  Parameters?: Record<string, { Type?: string; Default?: unknown }>;
  Conditions?: Record<string, unknown>;
  Outputs?: Record<string, { Value: unknown; Condition?: string }>;
}

export interface TemplateResource {
  Type: string;
  Properties?: Record<string, unknown>;
  Condition?: string;
  DependsOn?: string | string[];
  Metadata?: Record<string, unknown>;
}

export interface ResolveOptions extends Partial<HostUrls> {
  stackName: string;
  parameters?: Record<string, string>;
  /** Further resource types that are left out here although the template has them. */
  alsoIgnored?: string[];
}

/** A resource with every intrinsic function replaced by its value. */
export interface ResolvedResource {
  logicalId: string;
  type: string;
  /** What `Ref` gives. */
  ref: string;
  /** `''` for the few types without one. */
  arn: string;
  attributes: Record<string, string>;
  properties: Record<string, unknown>;
  metadata: Record<string, unknown>;
}

export interface ResolvedStack {
  stackName: string;
  resources: ReadonlyMap<string, ResolvedResource>;
  outputs: Record<string, unknown>;
  ofType(...types: string[]): ResolvedResource[];
  byArn(arn: string): ResolvedResource | undefined;
}

const UNSET_URL = 'http://127.0.0.1:0';
const NO_VALUE = Symbol('AWS::NoValue');

/** Resolves the template as CloudFormation would; refuses what this host cannot run, all of it in one message. */
export function resolveTemplate(template: CloudFormationTemplate, options: ResolveOptions): ResolvedStack {
  const resolver = new Resolver(template, options);
  const included = Object.entries(template.Resources ?? {}).filter(([, resource]) => resolver.included(resource));
  refuseUnsupported(included, options.alsoIgnored ?? []);
  refuseCycles(Object.fromEntries(included));
  const resources = new Map(
    included.map(([logicalId, resource]) => [logicalId, resolver.resource(logicalId, resource)]),
  );
  const outputs = Object.entries(template.Outputs ?? {})
    .filter(([, output]) => resolver.included(output))
    .map(([name, output]) => [name, resolver.value(output.Value, `Outputs.${name}`)]);
  return resolvedStack(options.stackName, resources, Object.fromEntries(outputs));
}

function resolvedStack(
  stackName: string,
  resources: ReadonlyMap<string, ResolvedResource>,
  outputs: Record<string, unknown>,
): ResolvedStack {
  const byArn = new Map([...resources.values()].map((resource) => [resource.arn, resource]));
  return {
    stackName,
    resources,
    outputs,
    ofType: (...types) => [...resources.values()].filter((resource) => types.includes(resource.type)),
    byArn: (arn) => (arn === '' ? undefined : byArn.get(arn)),
  };
}

function refuseUnsupported(resources: [string, TemplateResource][], alsoIgnored: string[]): void {
  const unsupported = resources.filter(([, { Type }]) => !SUPPORTED_TYPES.has(Type) && !alsoIgnored.includes(Type));
  if (unsupported.length === 0) return;
  const list = unsupported.map(([logicalId, { Type }]) => `  ${logicalId} (${Type})`).join('\n');
  throw new Error(`the local host does not support these resources of the template:\n${list}`);
}

class Resolver {
  readonly #template: CloudFormationTemplate;
  readonly #options: ResolveOptions;
  readonly #urls: HostUrls;
  readonly #pseudoParameters: Record<string, unknown>;

  constructor(template: CloudFormationTemplate, options: ResolveOptions) {
    this.#template = template;
    this.#options = options;
    this.#urls = { gatewayUrl: options.gatewayUrl ?? UNSET_URL, worldUrl: options.worldUrl ?? UNSET_URL };
    this.#pseudoParameters = {
      'AWS::AccountId': ACCOUNT,
      'AWS::Region': REGION,
      'AWS::Partition': 'aws',
      'AWS::URLSuffix': 'amazonaws.com',
      'AWS::StackName': options.stackName,
      'AWS::StackId': `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${options.stackName}/local`,
      'AWS::NoValue': NO_VALUE,
    };
  }

  included(conditional: { Condition?: string }): boolean {
    return conditional.Condition === undefined || this.#condition({ Condition: conditional.Condition });
  }

  resource(logicalId: string, resource: TemplateResource): ResolvedResource {
    const { ref, attributes } = this.#identity(logicalId, resource);
    const properties = this.value(resource.Properties ?? {}, logicalId) as Record<string, unknown>;
    return {
      logicalId,
      type: resource.Type,
      ref,
      arn: attributes.Arn ?? (ref.startsWith('arn:') ? ref : ''),
      attributes,
      properties: resource.Type === 'AWS::StepFunctions::StateMachine' ? substituted(properties) : properties,
      metadata: resource.Metadata ?? {},
    };
  }

  /** `where` is only for error messages. */
  value(value: unknown, where: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.value(item, where)).filter((item) => item !== NO_VALUE);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [first] = entries;
    if (entries.length === 1 && first && (first[0] === 'Ref' || first[0].startsWith('Fn::'))) {
      return this.#intrinsic(first[0], first[1], where);
    }
    return Object.fromEntries(
      entries.map(([key, item]) => [key, this.value(item, `${where}.${key}`)]).filter(([, item]) => item !== NO_VALUE),
    );
  }

  #intrinsic(name: string, argument: unknown, where: string): unknown {
    const list = () => this.value(argument, where) as unknown[];
    switch (name) {
      case 'Ref':
        return this.#ref(String(argument), where);
      case 'Fn::GetAtt':
        return this.#attribute(Array.isArray(argument) ? argument.join('.') : String(argument), where);
      case 'Fn::Join': {
        const [separator, parts] = list() as [string, string[]];
        return this.#localUrl(parts.join(separator));
      }
      case 'Fn::Sub':
        return this.#localUrl(this.#sub(argument, where));
      case 'Fn::Select': {
        const [index, from] = list() as [number | string, unknown[]];
        return from[Number(index)];
      }
      case 'Fn::Split': {
        const [separator, text] = list() as [string, string];
        return text.split(separator);
      }
      case 'Fn::If': {
        const [condition, then, otherwise] = argument as [string, unknown, unknown];
        return this.value(this.#condition({ Condition: condition }) ? then : otherwise, where);
      }
      default:
        throw new Error(`${where} uses ${name}, which the local host does not resolve`);
    }
  }

  #sub(argument: unknown, where: string): string {
    const [text, variables] = Array.isArray(argument) ? argument : [argument, {}];
    const values = variables as Record<string, unknown>;
    return String(text).replace(/\$\{(!?)([^}]+)\}/g, (_match, literal: string, name: string) => {
      if (literal) return `\${${name}}`;
      if (name in values) return String(this.value(values[name], where));
      return String(name.includes('.') ? this.#attribute(name, where) : this.#ref(name, where));
    });
  }

  #ref(name: string, where: string): unknown {
    if (name in this.#pseudoParameters) return this.#pseudoParameters[name];
    const resource = this.#template.Resources?.[name];
    if (resource) return this.#identity(name, resource).ref;
    const parameter = this.#template.Parameters?.[name];
    const given = this.#options.parameters?.[name] ?? parameter?.Default;
    if (given !== undefined) return given;
    if (parameter) throw new Error(`${where} needs the parameter ${name}, which has no default`);
    throw new Error(`${where} refers to ${name}, which the template does not have`);
  }

  #attribute(path: string, where: string): string {
    const dot = path.indexOf('.');
    const [logicalId, attribute] = [path.slice(0, dot), path.slice(dot + 1)];
    const resource = this.#template.Resources?.[logicalId];
    if (!resource) throw new Error(`${where} refers to ${logicalId}, which the template does not have`);
    const value = this.#identity(logicalId, resource).attributes[attribute];
    if (value === undefined)
      throw new Error(
        `${where} wants ${attribute} of ${logicalId} (${resource.Type}), which the local host does not know`,
      );
    return value;
  }

  #identity(logicalId: string, resource: TemplateResource) {
    return identify({
      ...this.#urls,
      stackName: this.#options.stackName,
      logicalId,
      type: resource.Type,
      property: (name) => this.value(resource.Properties?.[name], `${logicalId}.${name}`),
    });
  }

  /** CDK spells an API's URL with its id and region; here that API answers at the world's URL. */
  #localUrl(text: string): string {
    if (!text.includes('.execute-api.')) return text;
    for (const [logicalId, resource] of Object.entries(this.#template.Resources ?? {})) {
      if (resource.Type !== 'AWS::ApiGatewayV2::Api' || resource.Properties?.ProtocolType !== 'HTTP') continue;
      const deployed = `https://${this.#identity(logicalId, resource).ref}.execute-api.${REGION}.amazonaws.com`;
      if (text.includes(deployed)) return text.replace(deployed, this.#urls.worldUrl);
    }
    return text;
  }

  #condition(expression: unknown): boolean {
    const [operator, argument] = Object.entries(expression as Record<string, unknown>)[0] ?? [];
    const list = argument as unknown[];
    switch (operator) {
      case 'Condition': {
        const named = this.#template.Conditions?.[String(argument)];
        if (named === undefined) throw new Error(`the template has no condition ${String(argument)}`);
        return this.#condition(named);
      }
      case 'Fn::Equals':
        return this.value(list[0], 'Conditions') === this.value(list[1], 'Conditions');
      case 'Fn::Not':
        return !this.#condition(list[0]);
      case 'Fn::And':
        return list.every((part) => this.#condition(part));
      case 'Fn::Or':
        return list.some((part) => this.#condition(part));
      default:
        throw new Error(`the local host does not resolve the condition ${String(operator)}`);
    }
  }
}

/** A state machine's definition may name its own `${Variables}`, given beside it. */
function substituted(properties: Record<string, unknown>): Record<string, unknown> {
  const substitutions = (properties.DefinitionSubstitutions ?? {}) as Record<string, unknown>;
  const text = properties.DefinitionString ?? JSON.stringify(properties.Definition);
  if (typeof text !== 'string') return properties;
  const definition = text.replace(/\$\{(\w+)\}/g, (match, name: string) => String(substitutions[name] ?? match));
  return { ...properties, DefinitionString: definition };
}
