import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HttpApi } from '../../../local/api-gateway/http-api.ts';
import { ACCOUNT, FunctionError, REGION } from '../../../local/aws/aws.ts';
import { Iam } from '../../../local/iam/iam.ts';
import { resolveTemplate, type TemplateResource } from '../../../local/template/template.ts';
import { apiPermission, functionWith, httpApi, routePermission, template } from './small-template.ts';

type Event = Record<string, unknown> & { requestContext: Record<string, unknown>; headers: Record<string, string> };

const ROUTES = [
  'GET /runs',
  'DELETE /runs/{id}',
  'GET /runs/{id}',
  'GET /runs/latest',
  'POST /hooks/{source}/{tenant}',
  'GET /guarded/{id}',
];

const stack = resolveTemplate(
  template({
    ...functionWith('Echo'),
    ...functionWith('ApiKeysFunction'),
    ...httpApi(
      [...ROUTES, 'GET /unpermitted'].map((routeKey) => ({
        routeKey,
        to: 'Echo',
        ...(routeKey.includes('guarded') && { authorizer: 'ApiKeys' }),
      })),
      { ApiKeys: { function: 'ApiKeysFunction', settings: { identitySource: '$request.header.X-Api-Key' } } },
    ),
    ...Object.assign({}, ...ROUTES.map((routeKey) => routePermission('Echo', routeKey))),
    ...apiPermission('ApiKeysPermission', 'ApiKeysFunction', ['/authorizers/ApiKeys']),
  }),
  { stackName: 'Test' },
);

/** The results of the functions, set by each test; real function threads have their own tests. */
const echoed = (event: Event) => ({ statusCode: 200, body: JSON.stringify(event) });
let answer: (event: Event) => unknown = echoed;
let invoked: { name: string; event: Event }[] = [];
const nowMs = Date.UTC(2026, 10, 16, 1, 40);
const lines: string[] = [];

const api = new HttpApi({
  stack,
  iam: new Iam(stack),
  clock: { now: () => nowMs },
  log: (line) => lines.push(line),
  invoke: async (functionArn, event) => {
    const name = stack.byArn(functionArn)?.logicalId ?? functionArn;
    invoked.push({ name, event: event as Event });
    if (name === 'ApiKeysFunction') {
      const key = (event as Event).headers['x-api-key'];
      return { isAuthorized: key === 'good', context: { tenant: 'acme' } };
    }
    return JSON.parse(JSON.stringify((await answer(event as Event)) ?? null));
  },
});
const server = createServer((request, response) => void api.handle(request, response));
let url = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  answer = echoed;
  invoked = [];
  lines.length = 0;
});

const eventOf = async (path: string, init?: RequestInit) => (await (await fetch(url + path, init)).json()) as Event;

describe('a request', () => {
  it('becomes an event of payload format 2.0', async () => {
    const event = await eventOf('/runs/a%20b%2Fc?x=1&x=2&empty=', {
      method: 'GET',
      headers: { cookie: 'a=1; b=2', 'X-Custom': 'Value', 'user-agent': 'test' },
    });
    expect(event).toMatchObject({
      version: '2.0',
      routeKey: 'GET /runs/{id}',
      rawPath: '/runs/a%20b%2Fc',
      rawQueryString: 'x=1&x=2&empty=',
      cookies: ['a=1', 'b=2'],
      headers: { 'x-custom': 'Value', 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' },
      queryStringParameters: { x: '1,2', empty: '' },
      pathParameters: { id: 'a b/c' },
      isBase64Encoded: false,
      requestContext: {
        accountId: ACCOUNT,
        apiId: stack.resources.get('Api')?.ref,
        domainName: url.slice('http://'.length),
        http: {
          method: 'GET',
          path: '/runs/a%20b%2Fc',
          protocol: 'HTTP/1.1',
          sourceIp: '127.0.0.1',
          userAgent: 'test',
        },
        routeKey: 'GET /runs/{id}',
        stage: '$default',
        time: '16/Nov/2026:01:40:00 +0000',
        timeEpoch: nowMs,
      },
    });
    expect(event.headers.cookie).toBeUndefined();
    expect(event).not.toHaveProperty('body');
    expect(await eventOf('/runs')).not.toHaveProperty('queryStringParameters');
  });

  it('joins repeated headers with commas', async () => {
    await new Promise<void>((resolve) => {
      httpRequest(`${url}/runs`, { headers: ['host', 'h', 'x-many', 'one', 'X-Many', 'two'] }, (response) =>
        response.resume().on('end', resolve),
      ).end();
    });
    expect(invoked[0]?.event.headers['x-many']).toBe('one,two');
  });

  it.each([
    ['application/json', '{"a":1}', false],
    ['text/plain; charset=utf-8', 'grüß', false],
    ['application/cloudevents+json', '{}', false],
    ['application/x-www-form-urlencoded', 'payload=%7B%7D', true],
    ['application/octet-stream', 'bytes', true],
  ])('with a body of %s is text or base64, as on an HTTP API', async (contentType, body, isBase64Encoded) => {
    const event = await eventOf('/hooks/slack/x', { method: 'POST', body, headers: { 'content-type': contentType } });
    const expected = isBase64Encoded ? Buffer.from(body).toString('base64') : body;
    expect(event).toMatchObject({ body: expected, isBase64Encoded });
  });

  it('goes to the most specific route that has its method', async () => {
    const routeOf = async (method: string, path: string) => (await eventOf(path, { method })).routeKey;
    expect(await routeOf('GET', '/runs')).toBe('GET /runs');
    expect(await routeOf('GET', '/runs/latest')).toBe('GET /runs/latest');
    expect(await routeOf('GET', '/runs/other')).toBe('GET /runs/{id}');
    expect(await routeOf('DELETE', '/runs/latest')).toBe('DELETE /runs/{id}');
    const { pathParameters } = await eventOf('/hooks/github/acme', { method: 'POST' });
    expect(pathParameters).toEqual({ source: 'github', tenant: 'acme' });
  });

  it('without a route is not found', async () => {
    for (const [method, path] of [
      ['POST', '/runs'],
      ['GET', '/nowhere'],
      ['GET', '/runs/a/b'],
      ['GET', '/runs/'],
    ] as const) {
      const response = await fetch(url + path, { method });
      expect([response.status, await response.json()]).toEqual([404, { message: 'Not Found' }]);
    }
  });

  it('with more than 10 MB is refused', async () => {
    const response = await fetch(`${url}/hooks/a/b`, { method: 'POST', body: Buffer.alloc(10 * 1024 * 1024 + 1) });
    expect([response.status, await response.json()]).toEqual([413, { message: 'Request Entity Too Large' }]);
    expect(invoked).toEqual([]);
  });

  it('to a function that API Gateway may not invoke fails, and the log names the missing permission', async () => {
    const response = await fetch(`${url}/unpermitted`);
    expect([response.status, await response.json()]).toEqual([500, { message: 'Internal Server Error' }]);
    expect(invoked).toEqual([]);
    expect(lines[0]).toContain('apigateway.amazonaws.com is not authorized to perform lambda:InvokeFunction on Echo');
    expect(lines[0]).toContain('/$default/GET/unpermitted: no AWS::Lambda::Permission grants it');
  });
});

describe('a response', () => {
  it('has the status, the headers and the base64 body of the function', async () => {
    answer = () => ({
      statusCode: 201,
      headers: { 'Content-Type': 'image/png', 'X-Count': 3 },
      body: Buffer.from([0, 255]).toString('base64'),
      isBase64Encoded: true,
    });
    const response = await fetch(`${url}/runs`);
    expect(response.status).toBe(201);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(response.headers.get('x-count')).toBe('3');
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([0, 255]);
  });

  it.each([
    ['a function error', () => Promise.reject(new FunctionError('Error', 'boom'))],
    ['a result without a status', () => ({ hello: 'world' })],
    ['a status that is not a number', () => ({ statusCode: 'fine' })],
    ['a body that is not a string', () => ({ statusCode: 200, body: { a: 1 } })],
  ])('of %s is an internal server error', async (_name, failing) => {
    answer = failing;
    const response = await fetch(`${url}/runs`);
    expect([response.status, await response.json()]).toEqual([500, { message: 'Internal Server Error' }]);
  });

  it('that is too late is 503', async () => {
    const slow = resolveTemplate(
      template({
        ...functionWith('Slow'),
        ...httpApi([{ routeKey: 'GET /slow', to: 'Slow', integration: { timeoutInMillis: 50 } }]),
        ...routePermission('Slow', 'GET /slow'),
      }),
      { stackName: 'Test' },
    );
    const slowApi = new HttpApi({
      stack: slow,
      iam: new Iam(slow),
      clock: { now: () => nowMs },
      invoke: () => new Promise(() => {}),
    });
    const slowServer = createServer((request, response) => void slowApi.handle(request, response));
    await new Promise<void>((resolve) => slowServer.listen(0, '127.0.0.1', resolve));
    const response = await fetch(`http://127.0.0.1:${(slowServer.address() as AddressInfo).port}/slow`);
    expect([response.status, await response.json()]).toEqual([503, { message: 'Service Unavailable' }]);
    slowServer.closeAllConnections();
    slowServer.close();
  });
});

describe('an authorizer', () => {
  const get = (path: string, key?: string) => fetch(url + path, { headers: key ? { 'x-api-key': key } : {} });

  it('is not invoked when the credential is missing', async () => {
    const response = await get('/guarded/1');
    expect([response.status, await response.json()]).toEqual([401, { message: 'Unauthorized' }]);
    expect(invoked).toEqual([]);
  });

  it('forbids, or passes its context to the function', async () => {
    const forbidden = await get('/guarded/1', 'bad');
    expect([forbidden.status, await forbidden.json()]).toEqual([403, { message: 'Forbidden' }]);
    const event = (await (await get('/guarded/1', 'good')).json()) as Event;
    expect(event.requestContext.authorizer).toEqual({ lambda: { tenant: 'acme' } });
    expect(invoked[1]?.event).toMatchObject({
      version: '2.0',
      type: 'REQUEST',
      identitySource: ['good'],
      routeKey: 'GET /guarded/{id}',
      pathParameters: { id: '1' },
      routeArn: `arn:aws:execute-api:${REGION}:${ACCOUNT}:${stack.resources.get('Api')?.ref}/$default/GET/guarded/{id}`,
    });
  });

  it('is invoked for every request', async () => {
    await get('/guarded/1', 'good');
    await get('/guarded/1', 'good');
    expect(invoked.map(({ name }) => name)).toEqual(['ApiKeysFunction', 'Echo', 'ApiKeysFunction', 'Echo']);
  });

  it.each([
    { authorizerResultTtlInSeconds: 60 },
    { enableSimpleResponses: false },
    { identitySource: '$request.querystring.token' },
  ])('with %j stops the start', (settings) => {
    const route = { routeKey: 'GET /x', to: 'Echo', authorizer: 'Other' };
    expect(starting(httpApi([route], { Other: { function: 'Echo', settings } }))).toThrow(
      /the local host (supports only|does not support)/,
    );
  });
});

it.each(['x-amazon-apigateway-any-method /runs', 'GET /files/{path+}', 'GET $default'])(
  'a route %s stops the start',
  (routeKey) => {
    const [method = '', path] = routeKey.split(' ');
    const named = `${method.toUpperCase()} ${path}`;
    expect(starting(httpApi([{ routeKey, to: 'Echo' }]))).toThrow(`does not support the route key ${named}`);
  },
);

it.each([
  [{ type: 'http_proxy' }, 'supports only aws_proxy integrations'],
  [{ payloadFormatVersion: '1.0' }, 'with payload format 2.0'],
])('an integration with %j stops the start', (integration, message) => {
  expect(starting(httpApi([{ routeKey: 'GET /x', to: 'Echo', integration }]))).toThrow(message);
});

it('an HTTP API without a definition stops the start', () => {
  const Api = { Type: 'AWS::ApiGatewayV2::Api', Properties: { Name: 'api', ProtocolType: 'HTTP' } };
  expect(starting({ Api })).toThrow('supports only HTTP APIs with an OpenAPI Body');
});

function starting(api: Record<string, TemplateResource>): () => HttpApi {
  const unsupported = resolveTemplate(template({ ...functionWith('Echo'), ...api }), { stackName: 'Test' });
  const clock = { now: () => nowMs };
  return () => new HttpApi({ stack: unsupported, iam: new Iam(unsupported), clock, invoke: async () => ({}) });
}
