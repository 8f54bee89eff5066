import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describe, expect, inject, it } from 'vitest';
import * as z from 'zod';
import { route } from '../../lambdas/api/contract/route.ts';
import { ProblemDetails } from '../../lambdas/api/contract/schemas.ts';
import { readWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { AREAS, areaOf } from '../../lib/api/openapi/openapi-areas.ts';
import { openApiDocument } from '../../lib/api/openapi/openapi-document.ts';
import { PROBLEM_RESPONSES } from '../../lib/api/openapi/openapi-problems.ts';
import { readAssembly } from '../../local/template/synthesize.ts';
import { STAGES } from '../infrastructure/synthesized.ts';
import { allRoutes } from './every-route.ts';

interface Operation {
  operationId: string;
  tags: string[];
  description: string;
  security: Record<string, string[]>[];
  parameters?: { in: string; name: string; description?: string }[];
  responses: Record<string, { $ref?: string; content?: Record<string, unknown> }>;
}

type Paths = Record<string, Record<string, Operation>>;
const copyOf = (document: unknown) => JSON.parse(JSON.stringify(document));
const document = copyOf(openApiDocument());
const paths = document.paths as Paths;

/**
 * Rules that do not apply. The licence: each company that deploys a stage has its own contract. Ambiguous paths: API Gateway
 * prefers the literal in `/runs/bulk/{job}` to `/runs/{id}/…`, and no run has the id `bulk`.
 */
const RULES_OFF = { 'info-license': 'off', 'no-ambiguous-paths': 'off' } as const;

async function lint(linted: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'], rules: RULES_OFF });
  const problems = await lintFromString({ source: JSON.stringify(linted), absoluteRef: '/openapi.json', config });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`);
}

describe('the OpenAPI document', () => {
  it('is valid for an independent linter', async () => {
    expect(document.openapi).toBe('3.1.1');
    expect(await lint(document)).toEqual([]);
  });

  it.each<[string, (broken: { paths: Paths; components: Record<string, object> }) => void]>([
    ['a reference to nothing', ({ components }) => delete (components.schemas as Record<string, unknown>).RunSummary],
    [
      'an operation id that is used twice',
      (broken) => Object.assign(operation(broken, '/healthz'), { operationId: 'getDocs' }),
    ],
    ['a parameter that is not described', (broken) => delete operation(broken, '/api/v1/runs/{id}').parameters],
  ])('would not pass it with %s', async (_what, damage) => {
    const broken = copyOf(document);
    damage(broken);
    expect(await lint(broken)).not.toEqual([]);
  });

  it('has every route of the contract, and no other', () => {
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${operationId}: ${method.toUpperCase()} ${path}`),
    );
    const inContract = allRoutes.map(({ name, route: { method, path } }) => `${name}: ${method} ${path}`);
    expect(documented.toSorted()).toEqual(inContract.toSorted());
  });

  it.each(STAGES)('is the one that stage %s serves', (stage) => {
    const { template, codeFolder } = readAssembly(inject('assemblies')[stage], stage);
    const [, docs] = Object.entries(template.Resources ?? {}).find(([id]) => /^ApiDocs[0-9A-F]{8}$/.test(id)) ?? [];
    const code = docs?.Properties?.Code as { S3Key: string } | undefined;
    const folder = codeFolder(code?.S3Key ?? '');
    expect(JSON.parse(readFileSync(join(folder, 'openapi.json'), 'utf8'))).toEqual(document);
  });

  it('follows from the definition of a route alone', () => {
    const getThing = route({
      method: 'GET',
      path: '/api/v1/runs/{id}/thing',
      right: 'policies:replay',
      summary: 'Returns a thing',
      params: z.object({ id: z.string() }),
      responses: { 200: z.object({ size: z.int() }) },
    });
    const added = copyOf(openApiDocument({ group: { getThing } }));
    expect(added.paths['/api/v1/runs/{id}/thing'].get).toMatchObject({
      operationId: 'getThing',
      tags: ['Runs'],
      description: 'Requires the right `policies:replay` (owner, admin, auditor).',
      parameters: [{ in: 'path', name: 'id', required: true }],
      responses: {
        200: { content: { 'application/json': { schema: { properties: { size: { type: 'integer' } } } } } },
        403: { $ref: '#/components/responses/Forbidden' },
      },
    });
  });
});

const operation = (from: { paths: Paths }, path: string): Operation => from.paths[path]?.get as Operation;

describe.each(allRoutes)('$name', ({ name, route: { method, path, right, query, body, bodyType, example } }) => {
  const described = paths[path]?.[method.toLowerCase()] as Operation;

  it('has an area with a description (lib/api/openapi/openapi-areas.ts)', () => {
    expect(AREAS[areaOf(path) ?? 'none']?.name).toBe(described.tags[0]);
  });

  it('names the credentials that it accepts', () => {
    const schemes = described.security.map((each) => Object.keys(each)[0]);
    if (right === 'public') expect(schemes).toEqual([]);
    else if (right === 'signed' && path.startsWith('/api/v1/runs/')) expect(schemes).toEqual(['sessionToken']);
    else if (right === 'signed') expect(schemes).toEqual([expect.stringContaining('Signature')]);
    else expect(schemes).toEqual(['apiKey', 'token']);
  });

  it('describes its errors as problem documents', () => {
    const problems = Object.entries(described.responses).filter(([status]) => !status.startsWith('2'));
    expect(problems.map(([status]) => status)).toEqual(expect.arrayContaining(['429', '5XX']));
    for (const [status, { $ref }] of problems.filter(([status]) => status !== '429')) {
      const response = PROBLEM_RESPONSES[$ref?.split('/').at(-1) as 'BadRequest'];
      const { example: problem } = response.content['application/problem+json'];
      expect(ProblemDetails.parse(problem).status).toBe(status === '5XX' ? 500 : Number(status));
    }
    if (right !== 'public' && right !== 'signed') expect(described.responses).toHaveProperty('403');
    if (body || query) expect(described.responses).toHaveProperty('400');
  });

  it('describes the parameters of its path', () => {
    const undescribed = described.parameters?.filter((each) => each.in === 'path' && !each.description) ?? [];
    expect(undescribed.map((each) => each.name)).toEqual([]);
  });

  it('explains paging if it returns pages', () => {
    expect(described.description.includes('nextCursor')).toBe(Boolean(query && 'cursor' in query.shape));
  });

  if (example !== undefined) {
    it('accepts its own example', () => {
      expect(body?.safeParse(example).error).toBeUndefined();
      if (bodyType === 'application/yaml') expect(readWorkflow(String(example))).not.toHaveProperty('problems');
      expect(name).not.toBe('');
    });
  }
});
