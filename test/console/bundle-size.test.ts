import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { CONSOLE_BUDGET_KB, consoleSizes } from '../../bench/console-size.ts';
import { SITE_FOLDER } from '../../lambdas/console/environment.ts';
import { readAssembly } from '../../local/template/synthesize.ts';

it('the scripts of the console stay within their budget, in all and for the first page', () => {
  const { template, codeFolder } = readAssembly(inject('assemblies').local);
  const [, deploy] =
    Object.entries(template.Resources ?? {}).find(
      ([id, { Type }]) => Type === 'AWS::Lambda::Function' && id.startsWith('ConsoleDeploy'),
    ) ?? [];
  const { S3Key = '' } = (deploy?.Properties?.Code ?? {}) as { S3Key?: string };
  const { allKb, firstPageKb } = consoleSizes(join(codeFolder(S3Key), SITE_FOLDER));
  expect(firstPageKb).toBeGreaterThan(50);
  expect(firstPageKb).toBeLessThanOrEqual(CONSOLE_BUDGET_KB.firstPage);
  expect(allKb).toBeLessThanOrEqual(CONSOLE_BUDGET_KB.all);
});
