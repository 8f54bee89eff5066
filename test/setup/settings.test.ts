import { expect, it } from 'vitest';
import { SetupWorld } from './setup-world.ts';

it('settings are replaced, except the counter shards, and the history shows before and after', async () => {
  const world = new SetupWorld();
  await world.definitions.saveSettings('acme', { caps: {}, workspaces: {}, counterShards: 4 });
  const settings = {
    caps: { maxConcurrency: 50 },
    workspaces: { ops: 3 },
    approvalsChannel: '#approvals',
    overdueDigestMinutes: 240,
    features: { 'worker_orchestration.enabled': false },
  };
  const saved = await world.ask('PUT /api/v1/settings', { body: settings });
  const shown = { ...settings, counterShards: 4, flags: expect.any(Array) };
  expect(saved.body).toEqual({ ...shown, effectiveWithinSeconds: 60 });
  expect((await world.ask('GET /api/v1/settings')).body).toEqual(shown);
  expect((await world.changes())[0]).toMatchObject({
    actor: 'olivia',
    kind: 'settings',
    before: { caps: {} },
    after: { caps: { maxConcurrency: 50 } },
  });
});

const ISSUER = { name: 'corp', issuer: 'https://login.example.com', audience: 'countersign' };

it('only owners change the issuers that sign people in, and nobody does in prod', async () => {
  const world = new SetupWorld();
  const save = (issuers: object[], role: string) =>
    world.ask('PUT /api/v1/settings', { body: { issuers }, as: { role } });
  expect((await save([ISSUER], 'admin')).status).toBe(403);
  expect((await save([ISSUER], 'owner')).body).toMatchObject({ issuers: [ISSUER] });
  // An admin changes other settings, and may not drop the issuers by leaving them out.
  expect((await save([ISSUER], 'admin')).status).toBe(200);
  expect((await save([], 'admin')).status).toBe(403);
  world.kind = 'prod';
  expect(await save([], 'owner')).toMatchObject({ status: 403, text: expect.stringContaining('cdk.json') });
  expect(await world.definitions.settings('acme')).toMatchObject({ issuers: [ISSUER] });
});

it.each([
  [{ cap: {} }, 'did you mean `caps`?'],
  [{ caps: { maxConcurency: 1 } }, 'did you mean `maxConcurrency`?'],
  [{ caps: { maxConcurrency: 0 } }, 'caps.maxConcurrency'],
  [{ counterShards: 2 }, 'counterShards'],
  [{ overdueDigestMinutes: 5 }, 'overdueDigestMinutes'],
])('%j is refused, and nothing changes', async (body, expected) => {
  const world = new SetupWorld();
  expect(await world.ask('PUT /api/v1/settings', { body })).toMatchObject({
    status: 400,
    text: expect.stringContaining(expected),
  });
  expect(await world.changes()).toEqual([]);
});

it('shows every flag as it applies: the tenant first, then the stage, then the default', async () => {
  const world = new SetupWorld();
  world.stageFlags = { 'writes.enabled': false, 'worker_orchestration.enabled': false };
  await world.ask('PUT /api/v1/settings', { body: { features: { 'worker_orchestration.enabled': true } } });
  expect((await world.ask('GET /api/v1/settings')).body.flags).toMatchObject([
    { name: 'worker_orchestration.enabled', on: true, source: 'tenant' },
    { name: 'writes.enabled', on: false, source: 'stage' },
    { name: 'ui.task_workspace.enabled', on: true, source: 'default' },
  ]);
});
