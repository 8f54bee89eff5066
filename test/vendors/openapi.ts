import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { RecordedExchange } from './recorded-exchanges.ts';

type Schema = Record<string, unknown>;
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}
interface Content {
  content?: Record<string, { schema?: Schema }>;
}
type Ref = { $ref: string };
interface ApiOperation {
  parameters?: (Parameter | Ref)[];
  requestBody?: Content & { required?: boolean };
  responses: Record<string, Content | Ref>;
}
export interface OpenApiDocument {
  paths: Record<string, Record<string, ApiOperation>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Content>;
  };
}

const FIRST_REFUSAL = 400;
const DOCUMENT = 'description';
const JSON_TYPE = 'application/json';

/** A vendor's description of its API; finds the deviations of an exchange from it. */
export class OpenApi {
  readonly #document: OpenApiDocument;
  readonly #values: Ajv;
  /** Texts in a path or query may be numbers. */
  readonly #texts: Ajv;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: OpenApiDocument) {
    this.#document = withNulls(document) as OpenApiDocument;
    this.#values = this.#ajv({});
    this.#texts = this.#ajv({ coerceTypes: true });
  }

  /** `path` is relative to the API. `error` is the schema of an error that is not described. */
  problems(exchange: RecordedExchange, path: string, error: string): string[] {
    const found = this.#find(exchange.method.toLowerCase(), path);
    if (!found) return [`there is no ${exchange.method} ${path}`];
    const where = `${exchange.method} ${found.template}`;
    return [
      ...this.#parameterProblems(found, exchange.url.searchParams),
      ...this.#bodyProblems(found, exchange.body),
      ...this.#answerProblems(found, exchange, error),
    ].map((problem) => `${where}: ${problem}`);
  }

  #find(method: string, path: string) {
    const segments = path.split('/');
    const fitting = Object.keys(this.#document.paths)
      .filter((template) => this.#document.paths[template]?.[method] && fits(template.split('/'), segments))
      // A constant segment takes precedence over a parameter.
      .sort((a, b) => a.split('{').length - b.split('{').length);
    const [template] = fitting;
    const operation = template === undefined ? undefined : this.#document.paths[template]?.[method];
    return template !== undefined && operation ? { template, operation, method, segments } : undefined;
  }

  #parameterProblems({ template, operation, segments }: Found, query: URLSearchParams): string[] {
    const parameters = (operation.parameters ?? []).map((each) => this.#resolved<Parameter>(each));
    const names = template.split('/');
    const given = [
      ...[...query].map(([name, value]) => ({ name, value, in: 'query' })),
      ...names.flatMap((name, index) => {
        const parameter = /^\{(.*)\}$/.exec(name)?.[1];
        return parameter ? [{ name: parameter, value: decodeURIComponent(segments[index] ?? ''), in: 'path' }] : [];
      }),
    ];
    const missing = parameters
      .filter(({ required, name, in: place }) => required && place === 'query' && !query.has(name))
      .map(({ name }) => `the query needs ${name}`);
    const wrong = given.flatMap(({ name, value, in: place }) => {
      const parameter = parameters.find((each) => each.name === name && each.in === place);
      if (!parameter) return [`${name} is not a parameter of its ${place}`];
      // Coercion changes the object that holds a value.
      return this.#check(this.#texts, { type: 'object', properties: { [name]: parameter.schema } }, { [name]: value });
    });
    return [...missing, ...wrong];
  }

  #bodyProblems({ operation }: Found, body: unknown): string[] {
    const schema = operation.requestBody?.content?.[JSON_TYPE]?.schema;
    if (!schema) return body === undefined ? [] : ['it takes no body'];
    if (body === undefined) return operation.requestBody?.required ? ['it needs a body'] : [];
    const known = namesIn(schema);
    const unknown = Object.keys(body as object).filter((name) => known.length > 0 && !known.includes(name));
    return [...unknown.map((name) => `its body has no ${name}`), ...this.#check(this.#values, schema, body)];
  }

  #answerProblems({ operation }: Found, { status, answer }: RecordedExchange, error: string): string[] {
    const described = operation.responses[String(status)];
    if (!described && status < FIRST_REFUSAL) return [`it never answers ${status}`];
    const schema = described
      ? this.#resolved<Content>(described).content?.[JSON_TYPE]?.schema
      : { $ref: `#/components/schemas/${error}` };
    if (!schema) return answer === undefined ? [] : [`its ${status} has no body`];
    return this.#check(this.#values, schema, answer).map((problem) => `${status}: ${problem}`);
  }

  #check(ajv: Ajv, schema: Schema, value: unknown): string[] {
    const written = JSON.stringify(schema).replaceAll('"#/components/', `"${DOCUMENT}#/components/`);
    const key = `${ajv === this.#texts} ${written}`;
    const validate = this.#validators.get(key) ?? ajv.compile(JSON.parse(written));
    this.#validators.set(key, validate);
    return validate(value) ? [] : (validate.errors ?? []).map(inWords);
  }

  #resolved<T>(each: T | Ref): T {
    if (!(each && typeof each === 'object' && '$ref' in each)) return each as T;
    const [, , kind = '', name = ''] = each.$ref.split('/');
    return (this.#document.components as unknown as Record<string, Record<string, T>>)[kind]?.[name] as T;
  }

  #ajv(options: { coerceTypes?: true }): Ajv {
    const ajv = new Ajv({ strict: false, allErrors: true, logger: false, ...options });
    addFormats.default(ajv);
    const { schemas } = this.#document.components;
    return ajv.addSchema({ components: { schemas } }, DOCUMENT);
  }
}

/** In OpenAPI 3.0 `nullable` may be next to a reference; the validator requires a type there. */
function withNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNulls);
  if (value === null || typeof value !== 'object') return value;
  const { nullable, ...rest } = value as Schema;
  const inner = Object.fromEntries(Object.entries(rest).map(([name, each]) => [name, withNulls(each)]));
  if (nullable === undefined) return inner;
  return nullable === true && !('type' in rest) ? { anyOf: [{ type: 'null' }, inner] } : { ...inner, nullable };
}

interface Found {
  template: string;
  operation: ApiOperation;
  segments: string[];
}

const fits = (template: readonly string[], segments: readonly string[]): boolean =>
  template.length === segments.length &&
  template.every((part, index) => (part.startsWith('{') ? segments[index] !== '' : part === segments[index]));

/** The properties of a schema in all its variants. */
function namesIn(schema: Schema): string[] {
  const variants = ['oneOf', 'anyOf', 'allOf'].flatMap((keyword) => (schema[keyword] ?? []) as Schema[]);
  return [...Object.keys((schema.properties ?? {}) as object), ...variants.flatMap(namesIn)];
}

const inWords = ({ instancePath, message, params }: ErrorObject) =>
  `${instancePath} ${message} ${JSON.stringify(params)}`.trim();
