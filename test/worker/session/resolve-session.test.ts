import { beforeEach, describe, expect, it } from 'vitest';
import { Configuration } from '../../../lambdas/pipeline/configuration.ts';
import type { RunDraft } from '../../../lambdas/run/run-draft.ts';
import { resolveSession } from '../../../lambdas/worker/session/resolve-session.ts';
import { byTest } from '../../fakes/by-test.ts';
import { Workshop } from '../workshop.ts';

let shop: Workshop;
let makers: string[];
beforeEach(async () => {
  makers = [];
  shop = new Workshop();
  const a2a = { provider: 'a2a', url: 'https://triage.example.com', connection: 'triage-agent' };
  for (const [name, session] of [
    ['triage', a2a],
    ['hosts', { provider: 'agent', command: '/opt/triage/run', environment: 'staging', capabilities: ['triage'] }],
  ] as const) {
    await shop.definitions.saveConfiguration(
      'acme',
      { ...Configuration.parse({ name, session }), revision: 1, author: 'otto' },
      byTest(),
    );
  }
});

const resolve = (input: object, configuration?: string) => {
  const run = { tenant: 'acme', ...(configuration && { configuration }) };
  const draft = { run, addMaker: (person: string) => makers.push(person) } as unknown as RunDraft;
  return resolveSession(shop.worker, draft, { prompt: 'triage it', ...input });
};

describe('6.4 the configuration of a session', () => {
  it('is that of the step, or else that of the run, with its address as it is now', async () => {
    expect(await resolve({}, 'triage')).toMatchObject({
      configuration: 'triage',
      resolved: { url: 'https://triage.example.com', connection: 'triage-agent' },
    });
    expect(await resolve({ configuration: 'triage' }, 'hosts')).toMatchObject({ configuration: 'triage' });
  });

  it.each([
    ['that nobody names', {}, undefined, 'neither the step nor the automation'],
    ['that does not exist', { configuration: 'gone' }, 'triage', 'there is no configuration gone'],
  ])('%s is refused before anything is started, and the error says what to do', async (_, input, ofRun, message) => {
    await expect(resolve(input, ofRun)).rejects.toMatchObject({
      code: 'CONFIGURATION_UNRESOLVED',
      message: expect.stringContaining(message),
    });
    expect(shop.outside.calls).toEqual([]);
  });

  it('with the provider agent is the command of an agent, with the time of the session, at most an hour', async () => {
    const command = { command: '/opt/triage/run', environment: 'staging', capabilities: ['triage'] };
    expect(await resolve({ timeoutSeconds: 600 }, 'hosts')).toMatchObject({
      resolved: { command: { ...command, timeoutSeconds: 600 } },
    });
    expect(await resolve({ timeoutSeconds: 7_200 }, 'hosts')).toMatchObject({
      timeoutSeconds: 7_200,
      resolved: { command: { timeoutSeconds: 3_600 } },
    });
  });

  it('has an author, who is a maker of what the session does', async () => {
    await resolve({}, 'hosts');
    expect(makers).toEqual(['otto']);
  });

  it('of another tenant does not exist', async () => {
    const draft = { run: { tenant: 'globex', configuration: 'triage' } } as unknown as RunDraft;
    await expect(resolveSession(shop.worker, draft, { prompt: 'x' })).rejects.toMatchObject({
      code: 'CONFIGURATION_UNRESOLVED',
    });
  });
});
