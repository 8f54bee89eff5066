import * as z from 'zod';
import { didYouMean } from '../entry/did-you-mean.ts';
import { type HttpEvent, Problem, parseJsonBody, rawBody } from '../entry/http.ts';
import type { RouteDefinition } from './contract/route.ts';

const BODY_MAX_BYTES = 1024 * 1024;
/** A body can be wrong in thousands of places; the first ones are enough to correct it. */
const ISSUES_MAX = 20;
const DETAIL_MAX_CHARACTERS = 2_000;
const NAME_MAX_CHARACTERS = 60;

/** Senders of webhooks and browsers may add parameters to other paths. */
const API_PATH = /^\/api\//;
const NO_PARAMETERS = z.strictObject({});

/** Reads the parts of a request that its route describes, or throws a 400. A missing JSON body counts as `{}`. */
export function parseRequest(route: RouteDefinition, event: HttpEvent) {
  const { params, body, bodyType, bodyMaxBytes } = route;
  const query = route.query ?? (API_PATH.test(route.path) ? NO_PARAMETERS : undefined);
  return {
    params: params && parsed(params, event.pathParameters ?? {}),
    query: query && parsed(query, event.queryStringParameters ?? {}),
    body: body && parsed(body, bodyType ? bodyText(event, bodyMaxBytes) : jsonBody(event, bodyMaxBytes)),
  };
}

function jsonBody(event: HttpEvent, maxBytes?: number): unknown {
  const text = bodyText(event, maxBytes);
  return text === '' ? {} : parseJsonBody(text);
}

function bodyText(event: HttpEvent, maxBytes = BODY_MAX_BYTES): string {
  const body = rawBody(event);
  if (body.length <= maxBytes) return body.toString('utf8');
  throw new Problem(413, 'TOO_LARGE', `the body has ${body.length} bytes; at most ${maxBytes} are accepted`);
}

/** Throws a 400 that names each problem. */
export function parsed(schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const lines = result.error.issues.slice(0, ISSUES_MAX).flatMap((issue) => problemsOf(schema, issue));
  const detail = lines.join('\n');
  const shown = detail.length > DETAIL_MAX_CHARACTERS ? `${detail.slice(0, DETAIL_MAX_CHARACTERS)}…` : detail;
  throw new Problem(400, 'BAD_REQUEST', shown.toWellFormed());
}

type Issue = z.core.$ZodIssue;
/** Of zod, for a union without a message of its own. */
const DEFAULT_MESSAGE = 'Invalid input';

function problemsOf(schema: z.ZodType, issue: Issue): string[] {
  if (issue.code === 'unrecognized_keys') {
    const known = knownFields(schema, issue.path);
    return issue.keys.slice(0, ISSUES_MAX).map((key) => at(issue.path, unknownField(key, known)));
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // The schema says what is expected.
    if (issue.message !== DEFAULT_MESSAGE) return [at(issue.path, issue.message)];
    // The option that got furthest is probably the one that was meant.
    const options = issue.errors.toSorted((a, b) => depthOf(b) - depthOf(a));
    const nested = (options[0] ?? []).map((each) => ({ ...each, path: [...issue.path, ...each.path] }) as Issue);
    return nested.flatMap((each) => problemsOf(schema, each));
  }
  if (issue.code === 'invalid_union' && 'discriminator' in issue) return wrongKind(schema, issue);
  if (issue.code === 'invalid_value') return [at(issue.path, unknownValue(issue))];
  return [at(issue.path, plainMessage(issue))];
}

/** The field that selects one of several kinds is missing, mistyped or has an unknown value. */
function wrongKind(schema: z.ZodType, issue: Extract<Issue, { code: 'invalid_union' }>): string[] {
  const { path, input } = issue;
  const name = String(path.at(-1));
  const fields = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {};
  const values = 'options' in issue ? (issue.options ?? []).map(String) : [];
  if (typeof fields[name] === 'string') return [at(path, notValid(fields[name], values))];
  const above = path.slice(0, -1);
  const known = knownFields(schema, above);
  const unknown = Object.keys(fields).filter((key) => !known.includes(key));
  return [
    at(path, `is required; use ${values.join(', ')}`),
    ...unknown.slice(0, ISSUES_MAX).map((key) => at(above, unknownField(key, known))),
  ];
}

/** Names the closest allowed value, or else all of them. */
function unknownValue(issue: Extract<Issue, { code: 'invalid_value' }>): string {
  const values = issue.values.map(String);
  if (issue.input === undefined) return `is required; use ${values.join(', ')}`;
  return typeof issue.input === 'string' ? notValid(issue.input, values) : plainMessage(issue);
}

const notValid = (value: string, known: readonly string[]): string =>
  `"${shortName(value)}" is not valid${didYouMean(value, known) || `; use ${known.join(', ')}`}`;

const depthOf = (issues: readonly Issue[]): number => Math.max(0, ...issues.map(({ path }) => path.length));

const at = (path: readonly PropertyKey[], message: string): string =>
  path.length === 0 ? message : `${path.join('.')}: ${message}`;

function plainMessage(issue: Issue): string {
  const { code, message } = issue;
  if (code === 'invalid_type' && message.endsWith('received undefined')) return 'is required';
  if (code === 'invalid_type' && issue.expected === 'number' && Number.isNaN(issue.input)) return 'must be a number';
  if (code === 'too_small') return boundText(issue.origin, 'at least', issue.minimum);
  if (code === 'too_big') return boundText(issue.origin, 'at most', issue.maximum);
  return message.replace(/^(Invalid|Too big|Too small)[^:]*: /, '').replace('received', 'got');
}

const COUNTED: Record<string, string> = { string: 'characters', array: 'entries', set: 'entries', object: 'fields' };

function boundText(origin: string, bound: 'at least' | 'at most', limit: number | bigint): string {
  const things = COUNTED[origin];
  if (things === undefined) return `must be ${bound} ${limit}`;
  return bound === 'at least' && Number(limit) === 1 ? 'must not be empty' : `must have ${bound} ${limit} ${things}`;
}

const shortName = (name: string): string =>
  name.length > NAME_MAX_CHARACTERS ? `${name.slice(0, NAME_MAX_CHARACTERS)}…` : name;

function unknownField(key: string, known: readonly string[]): string {
  const shown = shortName(key);
  if (known.includes(key)) return `field \`${shown}\` is not allowed here`;
  const list = known.length === 0 ? '' : `; known: ${known.join(', ')}`;
  return `unknown field \`${shown}\`${didYouMean(key, known, (each) => `\`${each}\``) || list}`;
}

/** The parts of zod schemas that lead from a schema to the schema of one of its fields. */
interface SchemaParts {
  shape?: Record<PropertyKey, z.ZodType>;
  options?: readonly z.ZodType[];
  innerType?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
}

function knownFields(schema: z.ZodType, [first, ...rest]: readonly PropertyKey[]): string[] {
  const { shape, options, innerType, element, valueType } = schema.def as SchemaParts;
  const path = first === undefined ? [] : [first, ...rest];
  if (options) return [...new Set(options.flatMap((option) => knownFields(option, path)))];
  if (innerType) return knownFields(innerType, path);
  if (first === undefined) return Object.keys(shape ?? {});
  const field = shape?.[first] ?? element ?? valueType;
  return field ? knownFields(field, rest) : [];
}
