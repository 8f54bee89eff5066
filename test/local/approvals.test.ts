import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DescribeExecutionCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { afterEach, expect, it } from 'vitest';
import { APPROVAL_EXPIRES_AFTER_MS } from '../../lambdas/approval/approval.ts';
import { publish } from './definitions.ts';
import { isTerminal } from './host-client.ts';
import { labelWrites } from './seen-writes.ts';
import { startTestHost, type TestHost } from './test-host.ts';

const HOUR_MS = 3_600_000;
const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-approvals-'));
let host: TestHost;

afterEach(async () => {
  await host.stop();
  rmSync(dataFolder, { recursive: true, force: true });
});

/** The executions of the approval machine: name → status. */
async function executions(): Promise<Record<string, string | undefined>> {
  const client = new SFNClient(host.clientConfig());
  const stateMachineArn = host.only('AWS::StepFunctions::StateMachine').arn;
  const { executions: found = [] } = await client.send(new ListExecutionsCommand({ stateMachineArn }));
  const described = found.map(async ({ executionArn, name }) => {
    const { status } = await client.send(new DescribeExecutionCommand({ executionArn }));
    return [name, status] as const;
  });
  const statuses = Object.fromEntries(await Promise.all(described));
  client.destroy();
  return statuses;
}

it('a run waits at its gate, over a restart, and ends as expired when nobody answers within a day', async () => {
  host = await startTestHost({ dataFolder });
  await publish(host, {
    name: 'label-after-approval',
    event: 'release.published',
    steps: [
      { id: 'gate', tool: 'approval' },
      { id: 'label', tool: 'github.labels.add', with: { owner: 'o', repo: 'r', number: 1, labels: ['released'] } },
    ],
  });
  const { body } = await host.sendGithub({ action: 'published' }, { event: 'release' });
  const runId = body.runIds[0] ?? '';
  const waiting = await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  const approvalId = waiting.steps[0]?.approvalId ?? '';
  expect(waiting.steps.map(({ status }) => status)).toEqual(['waiting_approval', 'pending']);
  await host.idle();
  expect(await executions()).toEqual({ [approvalId]: 'RUNNING' });

  await host.stop();
  host = await startTestHost({ dataFolder });
  await host.advance(APPROVAL_EXPIRES_AFTER_MS - HOUR_MS);
  await host.sweep();
  await host.idle();
  expect((await host.run(runId)).status).toBe('waiting_approval');
  expect(await executions()).toEqual({ [approvalId]: 'RUNNING' });

  await host.advance(HOUR_MS);
  const ended = await host.waitForRun(runId, isTerminal);
  expect(ended).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
  expect(ended.steps.map(({ status }) => status)).toEqual(['failed_terminal', 'pending']);
  await host.idle();
  expect(await executions()).toEqual({ [approvalId]: 'SUCCEEDED' });
  expect(labelWrites(await host.calls(), 1)).toBe(0);
});
