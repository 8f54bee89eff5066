import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

export interface FakeTask {
  id: string;
  contextId: string;
  state: string;
  /** The agent has lost it: it does not know it any more. */
  isGone?: boolean;
  /** How often the agent was asked to end it. */
  cancelRequests: number;
  messages: { messageId: string; text: string; data: Record<string, unknown> }[];
}

const VERSION = '1.0';

interface Call {
  id: unknown;
  method: string;
  params: Record<string, unknown>;
}

/** An agent that speaks A2A 1.0 over JSON-RPC. Its sessions do nothing by themselves: a test acts for them. */
export class FakeA2a {
  readonly tasks: FakeTask[] = [];
  /** If false, the agent does not know the tasks that it has started. */
  knowsTasks = true;
  /** If true, the agent rejects the tasks that it gets. */
  rejectsTasks = false;
  acceptsToken: (token: string) => boolean = (token) => token !== '';

  answer({ method, url, headers, body }: FakeRequest): FakeAnswer {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '') ?? [];
    if (!this.acceptsToken(token)) return { status: 401, body: { error: 'unauthorized' } };
    if (method === 'GET') {
      const supportedInterfaces = [{ url: `${url.origin}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: VERSION }];
      return { status: 200, body: { name: 'fake', supportedInterfaces, capabilities: { pushNotifications: true } } };
    }
    const call = body as unknown as Call;
    if (headers.get('a2a-version') !== VERSION) {
      const error = { code: -32009, message: 'version not supported' };
      return { status: 200, body: { jsonrpc: '2.0', id: call.id, error } };
    }
    return { status: 200, body: { jsonrpc: '2.0', id: call.id, ...this.#result(call) } };
  }

  #result({ method, params }: Call): { result: unknown } | { error: { code: number; message: string } } {
    if (method === 'SendMessage') return { result: { task: shown(this.#start(params)) } };
    if (method === 'ListTasks') {
      const tasks = this.tasks.filter(({ contextId, isGone }) => contextId === params.contextId && !isGone);
      return { result: { tasks: tasks.map(shown) } };
    }
    const task = this.knowsTasks ? this.tasks.find(({ id }) => id === params.id) : undefined;
    if (!task || task.isGone) return { error: { code: -32001, message: 'task not found' } };
    if (method === 'CancelTask') {
      task.cancelRequests += 1;
      if (task.state !== 'TASK_STATE_WORKING') return { error: { code: -32002, message: 'task not cancelable' } };
      task.state = 'TASK_STATE_CANCELED';
    }
    return { result: shown(task) };
  }

  /** Like a real agent, it does not recognise a repeated message: it starts another task. */
  #start(params: Record<string, unknown>): FakeTask {
    const { messageId, contextId, parts } = params.message as {
      messageId: string;
      contextId: string;
      parts: [{ text: string }, { data: Record<string, unknown> }];
    };
    const message = { messageId, text: parts[0].text, data: parts[1].data };
    const id = `task-${this.tasks.length + 1}`;
    const state = this.rejectsTasks ? 'TASK_STATE_REJECTED' : 'TASK_STATE_WORKING';
    const task = { id, contextId, state, cancelRequests: 0, messages: [message] };
    this.tasks.push(task);
    return task;
  }
}

const shown = ({ id, contextId, state }: FakeTask) => ({ id, contextId, status: { state } });
