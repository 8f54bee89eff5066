import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withinDeadline } from '../../../lambdas/connectors/attempt-deadline.ts';
import type { Access } from '../../../lambdas/connectors/connector.ts';
import { a2aProvider } from '../../../lambdas/connectors/session/a2a-provider.ts';
import type { SessionContract, SessionProvider } from '../../../lambdas/connectors/session/session-provider.ts';

const provider: SessionProvider = a2aProvider;

/** What the next session does. `works`: it stays at work. The others end, are lost or are rejected. */
export type Behavior = 'works' | 'dies' | 'ends_early' | 'disappears' | 'refuses';

/** A fault of the next request of a method. `lost_answer` and `body`: the request has its effect. `slow`: 300 ms. */
export type AgentFault = 'lost_answer' | 'slow' | { status: number; retryAfterSeconds?: number } | { body: unknown };

/** One session as its agent knows it. */
export interface SeenSession {
  id: string;
  contextId: string;
  /** The ids of the messages that it got. */
  prompts: string[];
  cancelRequests: number;
}

/** An agent in which sessions run. */
export interface Agent {
  /** With a credential that the agent accepts. */
  access: Access;
  url: string;
  next(behavior: Behavior): Promise<void>;
  fault(method: 'GET' | 'POST', fault: AgentFault): Promise<void>;
  sessions(): Promise<SeenSession[]>;
  /** The parts of every message that the agent got. The simulators do not record the token of the session. */
  prompts(): Promise<{ text: string; data: Record<string, unknown> }[]>;
  close(): Promise<void>;
}

export const SLOW_MS = 300;
export const STAGE = 'http://127.0.0.1:1/dev';
const RUN = `run_${'7'.repeat(32)}`;
const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const LATER = { code: 'TARGET_REFUSED', retryable: true };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

export const CONTRACT: SessionContract = {
  ...{ tenant: 'acme', runId: RUN, stepId: 'triage', token: 'token-of-the-session', ownUrl: STAGE },
  ...{ sessionKey: `run:${RUN}:session`, promptKey: `run:${RUN}:prompt:v1`, completionId: 'cmp_1' },
  until: '2026-01-03T00:00:00.000Z',
};
export const PROMPT = {
  text: 'Triage the issue.',
  data: {
    ...{ run_id: RUN, completion_id: 'cmp_1', expires_at: CONTRACT.until, max_actions: 3 },
    token: CONTRACT.token,
    urls: { actions: `${STAGE}/actions`, complete: `${STAGE}/complete`, heartbeat: `${STAGE}/heartbeat` },
    actions: [{ tool: 'github.labels.add', with: { number: 7 } }],
    context: { issue: { title: 'Refunds fail', body: null, labels: ['bug', 'ünïcode'], weight: 0.5 } },
  },
};

/** The guarantees of the port, for the provider with every agent of the tests. */
export function describeSessionProviderContract(name: string, open: () => Promise<Agent>): void {
  describe(`a session provider, with ${name}`, () => {
    let agent: Agent;
    beforeEach(async () => {
      agent = await open();
    });
    afterEach(() => agent.close());

    const start = () => provider.start(agent.access, agent.url, CONTRACT, { ...PROMPT });
    const find = (key = CONTRACT.sessionKey) => provider.find(agent.access, agent.url, key);
    const state = (id: string) => provider.state(agent.access, agent.url, id);
    const end = (id: string) => provider.end(agent.access, agent.url, id);
    const becomes = (id: string, expected: string) => expect.poll(() => state(id)).toBe(expected);
    /** As with a step whose time is nearly over after the first request, which reads the agent card. */
    const hurried = <T>(call: () => Promise<T>) => {
      let requests = 0;
      const allowMs = ({ timeoutMs }: { timeoutMs: number }) => {
        requests += 1;
        return requests === 1 ? timeoutMs : SLOW_MS / 3;
      };
      return withinDeadline({ allowMs, requestNotSent: () => undefined }, call);
    };

    it('starts one session and prompts it once', async () => {
      const { sessionId } = await start();
      const { sessionKey: contextId, promptKey } = CONTRACT;
      expect(await agent.sessions()).toEqual([{ id: sessionId, contextId, prompts: [promptKey], cancelRequests: 0 }]);
      const [prompt, ...others] = await agent.prompts();
      const token = expect.stringMatching(`^(${CONTRACT.token}|\\[redacted\\])$`);
      expect(prompt).toEqual({ ...PROMPT, data: { ...PROMPT.data, token } });
      expect(others).toEqual([]);
      expect(await state(sessionId)).toBe('working');
    });

    it('finds the session by its key, and none by another key', async () => {
      expect(await find()).toBeUndefined();
      const started = await start();
      expect(await find()).toEqual(started);
      expect(await find(`${CONTRACT.sessionKey}:other`)).toBeUndefined();
      expect(await agent.sessions()).toHaveLength(1);
    });

    it('finds the session whose start had no response, so that it is not started again', async () => {
      await agent.fault('POST', 'lost_answer');
      await expect(start()).rejects.toMatchObject(UNKNOWN);
      const [session] = await agent.sessions();
      expect(session).toMatchObject({ contextId: CONTRACT.sessionKey, prompts: [CONTRACT.promptKey] });
      expect(await find()).toEqual({ sessionId: session?.id });
      expect(await agent.sessions()).toHaveLength(1);
    });

    it('finds the session whose start had no response in time', async () => {
      await agent.fault('POST', 'slow');
      await expect(hurried(start)).rejects.toMatchObject(UNKNOWN);
      await expect.poll(() => agent.sessions()).toHaveLength(1);
      const found = await find();
      expect(await agent.sessions()).toMatchObject([{ id: found?.sessionId, prompts: [CONTRACT.promptKey] }]);
    });

    it.each([
      ['403', { status: 403 }, REFUSED],
      ['429', { status: 429, retryAfterSeconds: 7 }, { ...LATER, retryAfterMs: 7_000 }],
      ['503', { status: 503 }, UNKNOWN],
    ])('a start that gets %s has started nothing, and says whether it may have', async (_, fault, expected) => {
      await agent.fault('POST', fault);
      await expect(start()).rejects.toMatchObject(expected);
      expect(await agent.sessions()).toEqual([]);
      expect(await find()).toBeUndefined();
    });

    it.each([
      ['invalid parameters', -32602, REFUSED],
      ['no push notifications', -32003, REFUSED],
      ['an unknown task', -32001, REFUSED],
      ['an internal error', -32603, UNKNOWN],
    ])('a start with the A2A error of %s says whether it may have started', async (_, code, expected) => {
      await agent.fault('POST', { body: { jsonrpc: '2.0', id: 1, error: { code, message: 'failed' } } });
      await expect(start()).rejects.toMatchObject(expected);
    });

    it('a rejected session is a refusal, and is not found by its key', async () => {
      await agent.next('refuses');
      await expect(start()).rejects.toMatchObject({ ...REFUSED, message: expect.stringContaining('rejected') });
      const [rejected] = await agent.sessions();
      expect(await state(rejected?.id ?? '')).toBe('dead');
      expect(await find()).toBeUndefined();
    });

    it.each([
      ['ends_early', 'ended'],
      ['dies', 'dead'],
      ['disappears', 'missing'],
    ] as const)('a session that %s is %s', async (behavior, expected) => {
      await agent.next(behavior);
      const { sessionId } = await start();
      await becomes(sessionId, expected);
      expect(await find()).toEqual(expected === 'missing' ? undefined : { sessionId });
    });

    it('a session that the agent never knew is missing', async () => {
      expect(await state('task-of-another')).toBe('missing');
    });

    it('ends a session; one that has ended, or is unknown, is no error', async () => {
      const { sessionId } = await start();
      await end(sessionId);
      expect(await state(sessionId)).toBe('ended');
      expect(await agent.sessions()).toMatchObject([{ id: sessionId, cancelRequests: 1 }]);
      await end(sessionId);
      await end('task-of-another');
      expect(await state(sessionId)).toBe('ended');
      expect(await agent.sessions()).toMatchObject([{ id: sessionId, cancelRequests: 2 }]);
    });

    it('a session that failed stays failed when it is ended', async () => {
      await agent.next('dies');
      const { sessionId } = await start();
      await becomes(sessionId, 'dead');
      await end(sessionId);
      expect(await state(sessionId)).toBe('dead');
    });

    it('an end without a response is unknown, and has its effect', async () => {
      const { sessionId } = await start();
      await agent.fault('POST', 'lost_answer');
      await expect(end(sessionId)).rejects.toMatchObject(UNKNOWN);
      expect(await state(sessionId)).toBe('ended');
    });

    it.each([
      ['a lost response', 'lost_answer'],
      ['503', { status: 503 }],
      ['an A2A error', { body: { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'failed' } } }],
      ['a body of another shape', { body: { jsonrpc: '2.0', id: 1 } }],
    ] as const)('reads that get %s may be repeated', async (_, fault) => {
      const { sessionId } = await start();
      for (const read of [() => state(sessionId), () => find()]) {
        await agent.fault('POST', fault);
        await expect(read()).rejects.toMatchObject(LATER);
      }
      expect(await state(sessionId)).toBe('working');
      expect(await find()).toEqual({ sessionId });
    });

    it('reads that take too long may be repeated', async () => {
      const { sessionId } = await start();
      await agent.fault('POST', 'slow');
      await expect(hurried(() => state(sessionId))).rejects.toMatchObject(LATER);
      expect(await state(sessionId)).toBe('working');
    });

    it('a credential that the agent does not accept is a final refusal of every call, and nothing happens', async () => {
      const { sessionId } = await start();
      const other = { ...agent.access, credential: { token: 'of-somebody-else' } };
      const { url } = agent;
      const refused = { ...REFUSED, status: 401, message: expect.stringContaining('check the credential') };
      await expect(provider.start(other, url, CONTRACT, PROMPT)).rejects.toMatchObject(refused);
      await expect(provider.find(other, url, CONTRACT.sessionKey)).rejects.toMatchObject(refused);
      await expect(provider.state(other, url, sessionId)).rejects.toMatchObject(refused);
      await expect(provider.end(other, url, sessionId)).rejects.toMatchObject(refused);
      expect(await agent.sessions()).toMatchObject([{ id: sessionId, cancelRequests: 0 }]);
      expect(await state(sessionId)).toBe('working');
    });

    it('sends nothing without a credential', async () => {
      const none = { ...agent.access, credential: {} };
      const starting = provider.start(none, agent.url, CONTRACT, PROMPT);
      await expect(starting).rejects.toMatchObject({ code: 'CONNECTION_MISSING' });
      expect(await agent.sessions()).toEqual([]);
    });

    it('an agent card that leads to another origin is refused before the message is sent', async () => {
      const supportedInterfaces = [
        { url: 'http://elsewhere.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ];
      await agent.fault('GET', { body: { supportedInterfaces } });
      await expect(start()).rejects.toMatchObject({ ...REFUSED, message: expect.stringContaining('another origin') });
      expect(await agent.sessions()).toEqual([]);
    });

    it('an agent of another version is refused before the message is sent', async () => {
      const supportedInterfaces = [{ url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }];
      await agent.fault('GET', { body: { supportedInterfaces } });
      await expect(start()).rejects.toMatchObject({ ...REFUSED, message: expect.stringContaining('A2A 1.0') });
      expect(await agent.sessions()).toEqual([]);
    });
  });
}
