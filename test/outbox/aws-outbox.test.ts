import type { SFNClient } from '@aws-sdk/client-sfn';
import type { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { expect, it } from 'vitest';
import { AwsOutbox } from '../../lambdas/outbox/aws-outbox.ts';
import { newOutboxEntry } from '../../lambdas/outbox/outbox.ts';
import { FakeClock } from '../fakes/fake-clock.ts';

it('a message to seal a run says whether it was sent before: then the run is sealed alone', async () => {
  const sent: unknown[] = [];
  const sqs = {
    send: async ({ input }: SendMessageCommand) => sent.push(JSON.parse(input.MessageBody ?? '')),
  } as unknown as SQSClient;
  const outbox = new AwsOutbox(sqs, {} as SFNClient, { sealQueueUrl: 'https://sqs/seal' }, new FakeClock());
  const run = { tenant: 'acme', runId: 'run_1' };
  const entry = newOutboxEntry({ kind: 'seal_evidence', ...run }, '2026-01-02T03:04:05.000Z');
  await outbox.dispatch(entry);
  await outbox.dispatch({ ...entry, attempts: 1 });
  const message = { kind: 'seal_evidence', entryId: entry.id, ...run };
  expect(sent).toEqual([message, { ...message, again: true }]);
});
