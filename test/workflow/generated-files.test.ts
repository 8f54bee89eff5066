import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { newWorkflow } from '../../bin/commands/workflow/new-workflow.ts';
import { generatedFiles } from '../../docs/generate.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

it('pages and schemas are as the code says; if not, run `npm run docs`', async () => {
  const files = [...(await generatedFiles())];
  expect(files.length).toBeGreaterThan(8);
  for (const [path, text] of files) expect(read(path), path).toBe(text);
});

const validators = new Map<string, ReturnType<Ajv['compile']>>();
function errorsOf(schema: string, content: unknown) {
  const ajv = new Ajv({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv) => void)(ajv);
  const validate = validators.get(schema) ?? ajv.compile(JSON.parse(read(`schemas/${schema}`)));
  validators.set(schema, validate);
  validate(content);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const SAMPLES: Record<string, string[]> = {
  'workflow.json': globSync('workflows/*.yaml', { cwd: ROOT }),
  'workflow-test.json': globSync('workflows/tests/*.yaml', { cwd: ROOT }),
  'policy-cases.json': globSync('policies/tests/*.yaml', { cwd: ROOT }),
};

describe.each(Object.entries(SAMPLES))('with %s', (schema, files) => {
  it.each(files)('%s is valid, and names its schema in the first line', (file) => {
    expect(errorsOf(schema, parse(read(file)))).toEqual([]);
    const named = /^# yaml-language-server: \$schema=(.*)\n/.exec(read(file))?.[1] ?? '';
    expect(join(file, '..', named)).toBe(`schemas/${schema}`);
  });
});

it('the files of `workflow init` are valid', async () => {
  const files = await newWorkflow({
    name: 'sample',
    source: 'servicenow',
    tool: 'servicenow.incident.update',
    schemas: '..',
  });
  expect(Object.keys(files)).toEqual(['sample.yaml', 'sample.automation.yaml', 'sample.test.yaml']);
  expect(errorsOf('workflow.json', parse(files['sample.yaml'] ?? ''))).toEqual([]);
  expect(errorsOf('automation.json', parse(files['sample.automation.yaml'] ?? ''))).toEqual([]);
  expect(errorsOf('workflow-test.json', parse(files['sample.test.yaml'] ?? ''))).toEqual([]);
});

it.each<[string, object, string]>([
  ['an unknown tool', { tool: 'github.labels.ad' }, '/steps/0/tool must be equal to one of the allowed values'],
  ['a missing input', { tool: 'wait.external', with: {} }, "/steps/0/with must have required property 'event'"],
  [
    'an unknown input',
    { tool: 'wait.external', with: { event: 'a', evnt: 1 } },
    '/steps/0/with must NOT have additional properties',
  ],
  ['an unknown field', { tool: 'transform', wiht: {} }, '/steps/0 must NOT have additional properties'],
  [
    'a loop without max',
    { tool: 'transform', forEach: { items: '{% 1 %}' } },
    "/steps/0/forEach must have required property 'max'",
  ],
])('an editor reports %s', (_what, step, error) => {
  expect(errorsOf('workflow.json', { name: 'x', steps: [{ id: 'a', ...step }] })).toContain(error);
});

/** The names of all fields of a schema without a description. `const` fields say it themselves. */
function withoutDescription(part: unknown, path = ''): string[] {
  if (Array.isArray(part)) return part.flatMap((each) => withoutDescription(each, path));
  if (part === null || typeof part !== 'object') return [];
  return Object.entries(part).flatMap(([keyword, value]) => {
    if (keyword !== 'properties') return withoutDescription(value, path);
    return Object.entries(value as Record<string, object>).flatMap(([name, field]) => [
      ...('description' in field || 'const' in field ? [] : [`${path}.${name}`]),
      ...withoutDescription(field, `${path}.${name}`),
    ]);
  });
}

it.each(['workflow.json', 'automation.json', 'policy-cases.json', 'workflow-test.json'])(
  '%s describes every field, so that an editor explains it',
  (schema) => {
    expect(withoutDescription({ properties: { one: { description: 'x', properties: { two: {} } } } })).toEqual([
      '.one.two',
    ]);
    expect(withoutDescription(JSON.parse(read(`schemas/${schema}`)))).toEqual([]);
  },
);

it('an expression may stand for a value of any type', () => {
  const value = { owner: 'o', repo: 'r', number: '{% trigger.number %}', labels: '{% trigger.labels %}' };
  const step = { id: 'a', tool: 'github.labels.add', with: value };
  expect(errorsOf('workflow.json', { name: 'x', steps: [step] })).toEqual([]);
});
