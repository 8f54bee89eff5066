import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import type { RouteDefinition } from '../../../lambdas/api/contract/route.ts';
import { ProblemDetails } from '../../../lambdas/api/contract/schemas.ts';
import { isOfSession } from './openapi-areas.ts';

type Code = (typeof ProblemDetails)['shape']['code']['_output'];

const problem = (description: string, status: number, title: string, code: Code, detail: string) => ({
  description,
  content: {
    'application/problem+json': {
      schema: ProblemDetails,
      example: { type: `urn:countersign:${code.toLowerCase().replaceAll('_', '-')}`, title, status, code, detail },
    },
  },
});

/** API Gateway itself refuses some requests, with a body of its own. */
const orFromGateway = (response: ZodOpenApiResponseObject, message: string): ZodOpenApiResponseObject => ({
  ...response,
  content: {
    ...response.content,
    'application/json': {
      schema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      example: { message },
    },
  },
});

/** The responses of all routes to requests that they refuse. */
export const PROBLEM_RESPONSES = {
  BadRequest: problem(
    'The request is not as the contract describes it',
    400,
    'Bad Request',
    'BAD_REQUEST',
    'unknown field `need`; did you mean `needs`?',
  ),
  Unauthorized: orFromGateway(
    problem('The credential or signature is missing or invalid', 401, 'Unauthorized', 'UNAUTHORIZED', 'sign the body'),
    'Unauthorized',
  ),
  Forbidden: orFromGateway(
    problem(
      'The credential is invalid, or the caller lacks a right',
      403,
      'Forbidden',
      'FORBIDDEN',
      'your role has no right runs:control',
    ),
    'Forbidden',
  ),
  NotFound: problem(
    'It does not exist in this tenant',
    404,
    'Not Found',
    'NOT_FOUND',
    'there is no run run_019a2f6c4d1e',
  ),
  Conflict: problem(
    'The current state does not allow this',
    409,
    'Conflict',
    'RUN_TERMINAL_STATE',
    'the run has ended',
  ),
  TooLarge: problem(
    'The body or the response is too large',
    413,
    'Content Too Large',
    'TOO_LARGE',
    'use a smaller limit',
  ),
  Unprocessable: problem(
    'The content is invalid',
    422,
    'Unprocessable Content',
    'WORKFLOW_INVALID',
    'the workflow has 2 problems',
  ),
  TooManyRequests: {
    description: 'Too many requests; try again in a moment',
    content: {
      'application/json': {
        schema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
        example: { message: 'Too Many Requests' },
      },
    },
  },
  ServerError: orFromGateway(
    problem(
      'A fault of the stage; try again',
      500,
      'Internal Server Error',
      'INTERNAL',
      'try again, or report request 3f9c2a',
    ),
    'Service Unavailable',
  ),
} satisfies Record<string, ZodOpenApiResponseObject>;

/** Which of them a route can return follows from what it accepts. */
export function problemsOf({ right, path, method, params, query, body }: RouteDefinition): ZodOpenApiResponsesObject {
  const isKeyed = right !== 'public' && right !== 'signed';
  const isSession = right === 'signed' && isOfSession(path);
  const changes = (isKeyed || isSession) && method !== 'GET';
  const possible: [status: string, name: keyof typeof PROBLEM_RESPONSES, is: boolean][] = [
    ['400', 'BadRequest', Boolean(params || query || body)],
    ['401', 'Unauthorized', right !== 'public'],
    ['403', 'Forbidden', isKeyed || isSession],
    ['404', 'NotFound', Boolean(params)],
    ['409', 'Conflict', changes || right === 'signed'],
    ['413', 'TooLarge', isKeyed || Boolean(body)],
    ['422', 'Unprocessable', changes && Boolean(body)],
    ['429', 'TooManyRequests', true],
    ['5XX', 'ServerError', true],
  ];
  return Object.fromEntries(
    possible.filter(([, , is]) => is).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
  );
}
