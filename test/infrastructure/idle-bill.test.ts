import { expect, it } from 'vitest';
import { idleBill, idleTotal } from '../../bench/bill/idle-stage.ts';
import { synthesize } from '../../local/template/synthesize.ts';
import { resolveTemplate } from '../../local/template/template.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';

it('a staging stage with two tenants and no traffic costs less than 25 USD a month', async () => {
  const folder = temporaryFolder();
  const settings = { kind: 'staging', tenants: ['acme', 'globex'], evidenceRetentionDays: 30 };
  const { template, stackName } = await synthesize(folder.path, 'idle', { idle: settings });
  const lines = idleBill(resolveTemplate(template, { stackName }));
  folder.remove();
  const usdOf = (name: string) => lines.find(({ line }) => line === name)?.usd;
  expect([usdOf('dashboards'), usdOf('keys')]).toEqual([3, 2]);
  expect(lines.every(({ count }) => count > 0)).toBe(true);
  expect(idleTotal(lines)).toBeLessThan(25);
});
