import { createHmac } from 'node:crypto';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import { githubDelivery } from '../../lambdas/intake/github-delivery.ts';
import type { WebhookSource } from '../../lambdas/intake/webhook.ts';
import type { Automation } from '../../lambdas/pipeline/definitions.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { MemorySigningSecrets } from '../fakes/memory/memory-signing-secrets.ts';
import { MemoryStepQueue } from '../fakes/memory/memory-step-queue.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';
import { type Passage, undisturbed } from '../fakes/passage.ts';

export const SECRET = 'a-github-secret-of-acme';

/** An intake with all fakes; `queuePassage` lets its queue fail. */
export function openIntake(queuePassage: Passage = undisturbed) {
  const clock = new FakeClock();
  return {
    clock,
    ids: new CountingIds(),
    log: new MemoryLog(),
    runs: new MemoryRunStore(),
    definitions: new MemoryDefinitions(),
    expressions: new OwnThreadExpressions(() => clock.now()),
    queue: new MemoryStepQueue(clock, queuePassage),
    secrets: new MemorySigningSecrets({ acme: { github: SECRET } }),
  };
}

export const automation = (name: string, differing: Partial<Automation['trigger']> = {}): Automation => ({
  name,
  enabled: true,
  workspace: 'default',
  trigger: { source: 'github', event: 'issues.opened', ...differing },
  workflow: { name: 'label-new-issue', version: 3 },
});

export const GITHUB: WebhookSource = { source: 'github', delivery: githubDelivery };

/** A webhook as API Gateway passes it on. */
export function webhook(body: string | Buffer, differing: Partial<HttpEvent> & { secret?: string } = {}): HttpEvent {
  const { secret = SECRET, headers = {}, ...rest } = differing;
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return {
    pathParameters: { tenant: 'acme' },
    body: body.toString(),
    isBase64Encoded: false,
    headers: {
      'x-github-event': 'issues',
      'x-github-delivery': 'delivery-1',
      'x-hub-signature-256': signature,
      ...headers,
    },
    requestContext: { requestId: 'request-1' },
    ...rest,
  } as unknown as HttpEvent;
}

export const ISSUE_OPENED = JSON.stringify({
  action: 'opened',
  issue: { number: 7, title: 'Checkout fails' },
  repository: { full_name: 'octo-org/payments' },
});
