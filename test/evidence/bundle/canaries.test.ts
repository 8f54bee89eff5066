import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import type { TargetFault } from '../../fakes/targets/fake-targets.ts';
import { Workshop } from '../../worker/workshop.ts';
import { CANARIES, TRIGGER_WITH_TEXTS, WORKFLOW_WITH_TEXTS } from './sealed-story.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

/** The bundle of the first run as the sealer left it, checked as an auditor would. */
async function sealed(): Promise<{ text: string; status: string }> {
  const document = shop.evidence.file('run_00000001', 'bundle.json');
  const envelope = shop.evidence.file('run_00000001', 'bundle.dsse.json');
  const verdict = verifyBundle({ document, envelope, keys: [trustedKey(shop.signer.publicKey)] });
  expect(verdict).toMatchObject({ verdict: 'valid' });
  return { text: document.toString(), status: JSON.parse(document.toString()).run.status };
}

const found = (text: string) => CANARIES.filter((canary) => text.includes(canary));

describe('the bundle of a real run contains no text of people or systems', () => {
  it.each<[string, string, TargetFault[], string]>([
    ['succeeds', WORKFLOW_WITH_TEXTS, [], 'succeeded'],
    ['is refused by its target', WORKFLOW_WITH_TEXTS, [{ status: 422 }], 'failed_terminal'],
    ['gets no answer to the end', WORKFLOW_WITH_TEXTS, Array(5).fill({ status: 500 }), 'failed_terminal'],
    [
      'has an expression that breaks over a text',
      WORKFLOW_WITH_TEXTS.replace('"CANARY-group", text', '"{% $number(trigger.title) %}", text'),
      [],
      'failed_terminal',
    ],
    [
      'has input whose very property names are somebody’s text',
      WORKFLOW_WITH_TEXTS.replace('{ category: "CANARY-group" }', '"{% trigger.payload %}"'),
      [],
      'failed_terminal',
    ],
  ])('when it %s', async (_what, yaml, faults, status) => {
    const message = await shop.begin(yaml, { trigger: TRIGGER_WITH_TEXTS });
    shop.outside.next('POST github', ...faults);
    await shop.finish(message);
    const { text, status: ended } = await sealed();
    expect(ended).toBe(status);
    expect(found(text)).toEqual([]);
  });

  it('when an operator cancels it with a reason', async () => {
    const yaml =
      'name: waiting\nsteps:\n  - { id: hold, tool: wait.external, with: { event: go, timeoutSeconds: 60 } }\n';
    const message = await shop.begin(yaml, { trigger: TRIGGER_WITH_TEXTS });
    await shop.work(message);
    await controlRun(shop.worker, message, { kind: 'cancel', reason: 'CANARY-note: it is Ana’s fault' }, 'olivia');
    const { commits } = await shop.finish(message);
    expect(JSON.stringify(commits)).toContain('CANARY-note');
    const { text, status } = await sealed();
    expect(status).toBe('canceled');
    expect(found(text)).toEqual([]);
  });

  it('when the text is in the name of a signal', async () => {
    const yaml =
      'name: waiting\nsteps:\n  - { id: hold, tool: wait.external, with: { event: "CANARY-signal {% trigger.title %}" } }\n';
    const message = await shop.begin(yaml, { trigger: TRIGGER_WITH_TEXTS });
    await shop.work(message);
    const signal = { kind: 'signal' as const, event: 'CANARY-signal CANARY-title', payload: null };
    await controlRun(shop.worker, message, signal, 'olivia');
    const { commits } = await shop.finish(message);
    expect(JSON.stringify(commits).match(/CANARY-signal CANARY-title/g)).toHaveLength(4);
    const { text, status } = await sealed();
    expect(status).toBe('succeeded');
    expect(found(text)).toEqual([]);
  });

  it('when a signal has it in its payload', async () => {
    const yaml =
      'name: waiting\nsteps:\n  - { id: hold, tool: wait.external, with: { event: go, timeoutSeconds: 60 } }\n';
    const message = await shop.begin(yaml, { trigger: TRIGGER_WITH_TEXTS });
    await shop.work(message);
    const signal = { kind: 'signal' as const, event: 'go', payload: { 'CANARY-label': 'CANARY-note' } };
    await controlRun(shop.worker, message, signal, 'olivia');
    await shop.finish(message);
    const { text, status } = await sealed();
    expect(status).toBe('succeeded');
    expect(found(text)).toEqual([]);
  });
});
