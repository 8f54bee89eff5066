import { beforeEach, expect, it } from 'vitest';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import { Workshop } from '../workshop.ts';

const WORKFLOW = 'name: triage\nsteps:\n  - { id: go, tool: wait.external, with: { event: go } }\n';
let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
});

it('a run whose workflow version is not published fails with its status and the reason, and holds no slot', async () => {
  await shop.definitions.saveSettings('acme', { caps: { maxConcurrency: 1 }, workspaces: {}, counterShards: 1 });
  const message = await shop.begin(WORKFLOW, { workflow: 'gone' });
  await shop.work(message);
  const { run, commits } = await shop.now(message);
  expect(run).toMatchObject({
    status: 'failed_terminal',
    error: {
      code: 'CONTEXT_MISSING',
      message: 'the run cannot continue from queued: its workflow gone version 1 is not published',
    },
  });
  expect(commits.at(-1)?.events).toContainEqual(expect.objectContaining({ to: 'failed_terminal' }));
  expect((await shop.finish(message)).sealed).toBe(true);
});

it('a started run whose workflow is gone fails too, and its waiting steps are closed', async () => {
  const message = await shop.begin(WORKFLOW);
  await shop.work(message);
  expect((await shop.now(message)).run.status).toBe('waiting_external');
  shop.definitions.workflow = async () => undefined;
  await shop.work(message);
  expect((await shop.now(message)).run).toMatchObject({
    status: 'failed_terminal',
    error: { code: 'CONTEXT_MISSING', message: expect.stringContaining('from waiting_external') },
  });
});

it('a command to such a run is refused with the reason, not with an internal error', async () => {
  const message = await shop.begin(WORKFLOW, { workflow: 'gone' });
  await expect(controlRun(shop.worker, message, { kind: 'pause' }, 'ana')).rejects.toMatchObject({
    code: 'CONTEXT_MISSING',
  });
});

it('a run whose trigger is lost fails, and says so', async () => {
  const message = await shop.begin(WORKFLOW);
  const { runs } = shop;
  const load = runs.load.bind(runs);
  runs.load = async (tenant, runId) => {
    const loaded = await load(tenant, runId);
    return loaded && { ...loaded, triggerIsLost: true };
  };
  await shop.work(message);
  expect((await load('acme', message.runId))?.run).toMatchObject({
    status: 'failed_terminal',
    error: { code: 'CONTEXT_MISSING', message: expect.stringContaining('its trigger is not stored') },
  });
});
