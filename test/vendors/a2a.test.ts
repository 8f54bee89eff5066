import { createServer, type IncomingMessage } from 'node:http';
import { Role } from '@a2a-js/sdk';
import { afterEach, expect, it, vi } from 'vitest';
import { a2aProvider } from '../../lambdas/connectors/session/a2a-provider.ts';
import { CONTRACT, describeSessionProviderContract, PROMPT } from '../contracts/sessions/session-provider-contract.ts';
import { listen, stop } from '../local/simulators/world.ts';
import { openSdkAgent, type SdkAgent } from './a2a-agent.ts';

// With notifications, the SDK logs each one that does not reach the stage.
describeSessionProviderContract('an agent of the official A2A SDK', () => openSdkAgent({ pushNotifications: false }));

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const each of opened.splice(0)) await each.close();
});

async function open(options?: { pushNotifications: boolean }): Promise<SdkAgent> {
  const agent = await openSdkAgent(options);
  opened.push(agent);
  return agent;
}

interface Notification {
  url: string;
  authorization: string;
  state: unknown;
}

/** A stage that receives notifications. */
async function openStage(): Promise<{ ownUrl: string; got: Notification[] }> {
  const got: Notification[] = [];
  const stage = createServer(async (request: IncomingMessage, response) => {
    const { statusUpdate, task } = JSON.parse((await request.toArray()).join(''));
    const { state } = (statusUpdate ?? task).status;
    got.push({ url: request.url ?? '', authorization: request.headers.authorization ?? '', state });
    response.writeHead(200).end();
  });
  const ownUrl = await listen(stage);
  opened.push({ close: () => stop(stage) });
  return { ownUrl, got };
}

it('the SDK gets version 1.0, the credential and one message that starts one task, and reads and cancels it', async () => {
  vi.spyOn(console, 'info').mockReturnValue();
  const { ownUrl } = await openStage();
  const agent = await open();
  const { access, url } = agent;
  const { sessionId } = await a2aProvider.start(access, url, { ...CONTRACT, ownUrl }, PROMPT);
  expect(await a2aProvider.find(access, url, CONTRACT.sessionKey)).toEqual({ sessionId });
  expect(await a2aProvider.state(access, url, sessionId)).toBe('working');
  await a2aProvider.end(access, url, sessionId);
  expect(await a2aProvider.state(access, url, sessionId)).toBe('ended');

  expect(agent.calls.map(({ method }) => method)).toEqual([
    ...['SendMessage', 'ListTasks', 'GetTask', 'CancelTask', 'GetTask'],
  ]);
  for (const { headers } of agent.calls) {
    expect(headers).toMatchObject({
      'a2a-version': '1.0',
      authorization: 'Bearer token-of-the-connection',
      'content-type': 'application/json',
    });
  }
  const [{ taskId, contextId, request, context } = expect.fail('no message'), ...others] = agent.received;
  expect(others).toEqual([]);
  expect({ taskId, contextId }).toEqual({ taskId: sessionId, contextId: CONTRACT.sessionKey });
  expect(context.requestedVersion).toBe('1.0');
  expect(request.message).toMatchObject({
    ...{ messageId: CONTRACT.promptKey, contextId: CONTRACT.sessionKey, role: Role.ROLE_USER },
    parts: [{ content: { $case: 'text', value: PROMPT.text } }, { content: { $case: 'data', value: PROMPT.data } }],
  });
  expect(request.configuration).toMatchObject({
    returnImmediately: true,
    taskPushNotificationConfig: {
      url: `${ownUrl}/api/v1/runs/${CONTRACT.runId}/heartbeat`,
      token: CONTRACT.promptKey,
      authentication: { scheme: 'Bearer', credentials: CONTRACT.token },
    },
  });
});

it('the SDK notifies the stage of the end, with the token of the session', async () => {
  vi.spyOn(console, 'info').mockReturnValue();
  const { ownUrl, got } = await openStage();
  const agent = await open();
  const { sessionId } = await a2aProvider.start(agent.access, agent.url, { ...CONTRACT, ownUrl }, PROMPT);
  agent.finish(sessionId);
  const sent = { url: `/api/v1/runs/${CONTRACT.runId}/heartbeat`, authorization: `Bearer ${CONTRACT.token}` };
  await expect.poll(() => got.at(-1)).toEqual({ ...sent, state: 'TASK_STATE_COMPLETED' });
  for (const each of got) expect(each).toMatchObject(sent);
});

it('an agent that cannot notify gets no token for it, and the session starts', async () => {
  const agent = await open({ pushNotifications: false });
  const { sessionId } = await a2aProvider.start(agent.access, agent.url, CONTRACT, PROMPT);
  expect(agent.calls[0]?.params.configuration).toEqual({ returnImmediately: true });
  expect(await a2aProvider.state(agent.access, agent.url, sessionId)).toBe('working');
});
