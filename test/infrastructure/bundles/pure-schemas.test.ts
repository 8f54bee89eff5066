import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { expect, it } from 'vitest';
import { withPureSchemas } from '../../../lib/pure-schemas.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** As esbuild does it for a bundle, of which only the exports in `used` are used. */
function bundled(source: string, used: string): string {
  const { code } = transformSync(`${withPureSchemas(source).replaceAll('export ', '')}\nuse(${used});`, {
    loader: 'ts',
    format: 'esm',
    treeShaking: true,
  });
  return code;
}

const SOURCE = `import * as z from 'zod';
const Name = z.string().min(1);
export const Person = z
  .object({ name: Name, age: z.int() })
  .refine((person) => {
    const adult = person.age > 17;

    return adult;
  });
export const Team = Person.extend({ team: z.string() });
export type Team = z.infer<typeof Team>;
export const isAdult = (age: number) => age > 17;
`;

it('leaves out schemas that nothing uses, and what only they use', () => {
  expect(bundled(SOURCE, 'isAdult')).not.toContain('z.');
});

it('leaves in what a used schema needs', () => {
  const code = bundled(SOURCE, 'Person');
  expect(code).toContain('z.string().min(1)');
  expect(code).toContain('return adult');
  expect(code).not.toContain('team');
});

it('changes nothing but the definitions of constants, in all sources of the functions', () => {
  for (const file of globSync('lambdas/**/*.ts', { cwd: ROOT })) {
    const source = readFileSync(join(ROOT, file), 'utf8');
    const marked = withPureSchemas(source);
    const unmarked = marked.replace(/\/\* @__PURE__ \*\/ \(\(\) => ([\s\S]*?)\)\(\);$/gm, '$1;');
    expect(unmarked, file).toBe(source);
    transformSync(marked, { loader: 'ts' });
  }
});
