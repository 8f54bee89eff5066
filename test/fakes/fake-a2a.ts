import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

export interface FakeTask {
  id: string;
  contextId: string;
  state: string;
  messages: { messageId: string; text: string; data: Record<string, unknown> }[];
}

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

  answer({ method, url, body }: FakeRequest): FakeAnswer {
    if (method === 'GET') {
      const supportedInterfaces = [{ url: `${url.origin}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      return { status: 200, body: { name: 'fake', supportedInterfaces } };
    }
    const call = body as unknown as Call;
    return { status: 200, body: { jsonrpc: '2.0', id: call.id, ...this.#result(call) } };
  }

  #result({ method, params }: Call): { result: unknown } | { error: { code: number; message: string } } {
    if (method === 'SendMessage') return { result: { task: shown(this.#start(params)) } };
    if (method === 'ListTasks') {
      const tasks = this.tasks.filter(({ contextId }) => contextId === params.contextId);
      return { result: { tasks: tasks.map(shown) } };
    }
    const task = this.knowsTasks ? this.tasks.find(({ id }) => id === params.id) : undefined;
    if (!task) return { error: { code: -32001, message: 'task not found' } };
    if (method === 'CancelTask') task.state = 'TASK_STATE_CANCELED';
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
    const task = { id: `task-${this.tasks.length + 1}`, contextId, state: 'TASK_STATE_WORKING', messages: [message] };
    this.tasks.push(task);
    return task;
  }
}

const shown = ({ id, contextId, state }: FakeTask) => ({ id, contextId, status: { state } });
