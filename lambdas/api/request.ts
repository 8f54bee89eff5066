import * as z from 'zod';
import { type HttpEvent, Problem, parseJsonBody, rawBody } from '../entry/http.ts';

const BODY_MAX_BYTES = 1024 * 1024;

export function parseQuery<Schema extends z.ZodType>(schema: Schema, event: HttpEvent): z.output<Schema> {
  return parsed(schema, event.queryStringParameters ?? {});
}

/** A body that must be JSON of this shape; none at all counts as an empty object. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, event: HttpEvent): z.output<Schema> {
  const text = rawText(event);
  return parsed(schema, text === '' ? {} : parseJsonBody(text));
}

export function rawText(event: HttpEvent): string {
  const body = rawBody(event);
  if (body.length > BODY_MAX_BYTES) throw new Problem(413, 'TOO_LARGE', `at most ${BODY_MAX_BYTES} bytes are taken`);
  return body.toString('utf8');
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new Problem(400, 'BAD_REQUEST', whatIsWrong(result.error));
}

/** A body can be wrong in thousands of places; the first ones are enough to go on. */
const SAID_MAX_CHARACTERS = 2_000;
const ISSUES_MAX = 20;

export function whatIsWrong({ issues }: z.ZodError): string {
  const said = z.prettifyError({ issues: issues.slice(0, ISSUES_MAX) });
  return said.length > SAID_MAX_CHARACTERS ? `${said.slice(0, SAID_MAX_CHARACTERS).toWellFormed()}…` : said;
}
