import type * as z from 'zod';
import type { Right } from '../../people/rights.ts';

/** One route of the HTTP API. The stack, the router, validation, the client, OpenAPI and the tests of rights derive from it. */
export interface RouteDefinition {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: `/${string}`;
  /**
   * The right that the caller's role must have. `public`: no API key. `signed`: no API key, the sender signs the body or has
   * the token of a session; the function verifies it.
   */
  right: Right | 'public' | 'signed';
  /** Only for people: a key of a machine is refused. */
  peopleOnly?: true;
  /** One sentence that begins with a verb: `Lists runs, the newest first`. */
  summary: string;
  /** Accepts the header `Idempotency-Key`: the same request again changes nothing and gets the same response. */
  idempotent?: true;
  /** What else a caller has to know, as Markdown. Rights, paging and errors follow from the other fields. */
  description?: string;
  /** One key for each placeholder of the path. */
  params?: z.ZodObject;
  /** Without it, query parameters are ignored. */
  query?: z.ZodObject;
  /** JSON, unless `bodyType` says otherwise. Without it, the body is ignored. */
  body?: z.ZodType;
  /** The media type of a body that the handler receives as text. */
  bodyType?: 'application/yaml' | 'application/x-www-form-urlencoded';
  /** By default 1 MB. */
  bodyMaxBytes?: number;
  /** A body that the route accepts. */
  example?: unknown;
  /** The body of each successful response, by status. Every route can also respond with a `ProblemDetails`. */
  responses: Readonly<Record<number, z.ZodType>>;
  /** The media types of a response that is a file. */
  responseType?: string | readonly string[];
}

/** Routes by operation name, e.g. `listRuns`. */
export type Routes = Readonly<Record<string, RouteDefinition>>;

export const route = <const Definition extends RouteDefinition>(definition: Definition): Definition => definition;

/** As API Gateway names the route: `GET /api/v1/runs/{id}`. */
export const routeKey = ({ method, path }: RouteDefinition): string => `${method} ${path}`;

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

export type ParamsOf<Route extends RouteDefinition> = Parsed<Route['params']>;
export type QueryOf<Route extends RouteDefinition> = Parsed<Route['query']>;
export type BodyOf<Route extends RouteDefinition> = Parsed<Route['body']>;

/** What a handler returns: one of the route's statuses, with the body that the contract has for it. */
export type ResponseOf<Route extends RouteDefinition> = {
  [Status in keyof Route['responses']]: {
    status: Status;
    body: z.input<Route['responses'][Status]>;
    headers?: Record<string, string>;
  };
}[keyof Route['responses']];

/** What a client of the API receives, e.g. `ReceivedFrom<typeof runRoutes.getRun>`. */
export type ReceivedFrom<Route extends RouteDefinition> = z.output<Route['responses'][keyof Route['responses']]>;
