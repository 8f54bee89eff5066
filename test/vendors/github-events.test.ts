import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';

interface Schema {
  $ref?: string;
  oneOf?: Schema[];
  properties?: { action?: { enum?: string[] } };
}
interface Description {
  'x-webhooks': Record<
    string,
    {
      post: {
        'x-github': { subcategory: string };
        requestBody: { content: { 'application/json': { schema: Schema } } };
      };
    }
  >;
  components: { schemas: Record<string, Schema> };
}

it('lambdas/pipeline/github-events.json lists the events and actions of GitHub’s OpenAPI description (update: vitest -u)', async () => {
  const path = createRequire(import.meta.url).resolve('@octokit/openapi/generated/api.github.com.json');
  const { 'x-webhooks': webhooks, components }: Description = JSON.parse(readFileSync(path, 'utf8'));
  const variants = (schema: Schema): Schema[] => {
    if (schema.$ref) return variants(components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
    return schema.oneOf ? schema.oneOf.flatMap(variants) : [schema];
  };
  const events = new Map<string, Set<string>>();
  for (const { post } of Object.values(webhooks)) {
    const event = post['x-github'].subcategory.replaceAll('-', '_');
    const actions = variants(post.requestBody.content['application/json'].schema).flatMap(
      ({ properties }) => properties?.action?.enum ?? [],
    );
    events.set(event, new Set([...(events.get(event) ?? []), ...actions]));
  }
  const sorted = [...events]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([event, actions]) => [event, [...actions].sort().join(' ')]);
  expect(sorted.length).toBeGreaterThan(70);
  await expect(`${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`).toMatchFileSnapshot(
    '../../lambdas/pipeline/github-events.json',
  );
});
