import { setTimeout as wait } from 'node:timers/promises';
import { vi } from 'vitest';
import type { SystemsState } from '../../../local/simulators/state.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { FakeTargets } from '../../fakes/targets/fake-targets.ts';
import { openWorld } from '../../local/simulators/world.ts';
import { type Agent, type AgentFault, type Behavior, SLOW_MS, STAGE } from './session-provider-contract.ts';

/** The agent of the chaos simulation, behind its own `fetch`. */
export async function openFakeAgent(): Promise<Agent> {
  const targets = new FakeTargets(new FakeClock());
  const { sessions } = targets;
  const token = 'token-of-the-connection';
  sessions.acceptsToken = (sent) => sent === token;
  let behavior: Behavior = 'works';
  let slow: string | undefined;
  vi.stubGlobal('fetch', async (input: string | URL, init: RequestInit = {}) => {
    sessions.rejectsTasks = behavior === 'refuses';
    const before = sessions.tasks.length;
    const response = await targets.fetch(input, init);
    const started = sessions.tasks[before];
    if (started && behavior === 'dies') started.state = 'TASK_STATE_FAILED';
    if (started && behavior === 'ends_early') started.state = 'TASK_STATE_COMPLETED';
    if (started && behavior === 'disappears') started.isGone = true;
    if (slow !== init.method) return response;
    slow = undefined;
    await wait(SLOW_MS, undefined, init.signal ? { signal: init.signal } : {});
    return response;
  });
  return {
    access: { ...targets.access().sessions, credential: { token } },
    url: 'http://sessions',
    next: async (next) => {
      behavior = next;
    },
    fault: async (method, fault) => {
      if (fault === 'slow') slow = method;
      else targets.next(`${method} sessions`, fault);
    },
    sessions: async () =>
      sessions.tasks.map(({ id, contextId, messages, cancelRequests }) => {
        return { id, contextId, prompts: messages.map(({ messageId }) => messageId), cancelRequests };
      }),
    prompts: async () => sessions.tasks.flatMap(({ messages }) => messages.map(({ text, data }) => ({ text, data }))),
    close: async () => {
      vi.unstubAllGlobals();
    },
  };
}

interface Sent {
  method: string;
  params: { message: { messageId: string; parts: [{ text: string }, { data: Record<string, unknown> }] } };
}

/** The agent of the local host, behind real HTTP. */
export async function openSimulatedAgent(): Promise<Agent> {
  const world = await openWorld();
  const url = `${world.url}/_sim/sessions`;
  const fault = async (kind: object, method = 'POST') => {
    const { status } = await world.ask('POST', '/faults', { system: 'sessions', method, ...kind });
    if (status >= 300) throw new Error(`the simulators refused the fault (${status})`);
  };
  const messages = async (): Promise<Sent['params']['message'][]> => {
    const calls = (await world.calls('?system=sessions&method=POST')) as unknown as { body: Sent }[];
    return calls.flatMap(({ body }) => (body.method === 'SendMessage' ? [body.params.message] : []));
  };
  return {
    access: { baseUrl: url, instance: 'acme', credential: { token: 'local-agent' }, ownUrl: STAGE },
    url,
    next: async (behavior) => {
      // A session without a fault stays at work, because it cannot reach the stage.
      if (behavior !== 'works') await fault({ kind: 'surprise', surprise: behavior });
    },
    fault: (method, wanted) => fault(inTheirWords(wanted), method),
    sessions: async () => {
      const { sessions } = (await world.ask('GET', '/state')).body as SystemsState;
      return sessions.map(({ id, contextId, messageId, cancelRequests }) => {
        return { id, contextId, prompts: [messageId], cancelRequests };
      });
    },
    prompts: async () => (await messages()).map(({ parts: [{ text }, { data }] }) => ({ text, data })),
    close: () => world.close(),
  };
}

function inTheirWords(fault: AgentFault): object {
  if (fault === 'lost_answer') return { kind: 'lost_answer' };
  if (fault === 'slow') return { kind: 'delay', delayMs: SLOW_MS };
  return 'status' in fault ? { kind: 'status', ...fault } : { kind: 'other_body', ...fault };
}
