import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { docsRoutes } from '../../lambdas/api/contract/docs.ts';
import { docsHandler } from '../../lambdas/api/docs/docs.ts';
import { DOCS_PAGE, START_SCRIPT } from '../../lambdas/api/docs/docs-page.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';

const { resolve } = createRequire(import.meta.url);
let reads: string[] = [];
const handle = docsHandler({
  read: (name) => {
    reads.push(name);
    return name === 'openapi.json'
      ? Buffer.from('{"openapi":"3.1.1"}')
      : readFileSync(resolve(`swagger-ui-dist/${name}`));
  },
});

const get = (routeKey: string, headers: Record<string, string> = {}, file?: string) =>
  handle(undefined, { routeKey, rawPath: '', headers, pathParameters: { file } } as unknown as HttpEvent);
const bytes = ({ body = '' }: { body?: string }) => Buffer.from(body, 'base64');

it('the page loads only files that the API serves, and has no inline script or style', async () => {
  const page = bytes(await get('GET /docs')).toString();
  expect(page).toBe(DOCS_PAGE);
  const loaded = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url);
  const served = Object.keys(docsRoutes.getDocsFile.params.shape.file.enum).map((file) => `docs/${file}`);
  expect(loaded.toSorted()).toEqual([...served, 'data:,', 'openapi.json'].toSorted());
  expect(page).not.toMatch(/<script>|<style|\sstyle=|\son\w+=/);
  expect(page + START_SCRIPT).not.toMatch(/https?:/);
});

it('the start script passes its settings to Swagger UI, which must not call a validator', () => {
  let settings: Record<string, unknown> = {};
  new Function('SwaggerUIBundle', START_SCRIPT)((given: Record<string, unknown>) => {
    settings = given;
  });
  expect(settings).toMatchObject({ url: 'openapi.json', dom_id: '#docs', validatorUrl: null });
  expect(DOCS_PAGE).toContain('id="docs"');
});

it.each([
  ['GET /openapi.json', undefined, 'application/json'],
  ['GET /docs', undefined, 'text/html; charset=utf-8'],
  ['GET /docs/{file}', 'swagger-ui.css', 'text/css; charset=utf-8'],
  ['GET /docs/{file}', 'swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['GET /docs/{file}', 'start.js', 'text/javascript; charset=utf-8'],
])(
  '%s %s is sent with its type and a strict policy, compressed if the client accepts that',
  async (key, file, type) => {
    const plain = await get(key, {}, file);
    const compressed = await get(key, { 'accept-encoding': 'br, gzip' }, file);
    expect(plain.headers).toMatchObject({
      'content-type': type,
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^default-src 'none'; script-src 'self'; style-src 'self'; /),
    });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(compressed.headers).toMatchObject({ 'content-encoding': 'gzip' });
    expect(gunzipSync(bytes(compressed))).toEqual(bytes(plain));
  },
);

it('each file is read once', async () => {
  reads = [];
  for (let count = 0; count < 3; count += 1) await get('GET /docs/{file}', {}, 'swagger-ui.css');
  expect(reads).toEqual([]);
});

it('no other file can be read', async () => {
  for (const file of ['../docs.ts', 'swagger-ui.js', 'openapi.json']) {
    await expect(get('GET /docs/{file}', {}, file)).rejects.toMatchObject({ status: 400, code: 'BAD_REQUEST' });
  }
});
