import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { FunctionError } from '../aws/aws.ts';
import type { PassedRequest, PassedRequests } from '../aws/passed-requests.ts';
import type { FunctionDefinition } from './function-definition.ts';

interface InstanceOptions {
  definition: FunctionDefinition;
  accessKeyId: string;
  environment: Record<string, string>;
  clockOffset: Float64Array;
  onLine(line: string): void;
  /** Called after each invocation that returned. */
  onCpuTime(ms: number): void;
  /** The addresses whose requests the thread passes as messages, and who answers them. */
  passed: PassedRequests;
  /** Called once, when the thread has ended. */
  onExit(): void;
}

type ThreadMessage =
  | { kind: 'ready' }
  | { kind: 'log'; text: string }
  | PassedRequest
  | { kind: 'result'; resultJson: string; cpuMs: number }
  /** `error`: the handler threw. `failed`: it could not be loaded. */
  | { kind: 'error' | 'failed'; error: ThreadError };

interface ThreadError {
  errorType: string;
  message: string;
  stack?: string;
}

interface Pending {
  resolve(resultJson: string): void;
  reject(error: Error): void;
}

/** Lambda's limit is ten seconds. Here many functions may start at the same time on few cores. */
const INIT_TIMEOUT_MS = 60_000;

/**
 * V8 options for function threads. A heap has 10 to 20 MB. V8 expects such a small heap to stay small, so it would collect all of it
 * repeatedly, drop compiled code and compile it again. That takes a tenth of the CPU time under load.
 */
for (const flag of ['--initial-old-space-size=64', '--no-flush-bytecode']) setFlagsFromString(flag);

/** One execution environment: a thread with the bundled handler and one invocation at a time. */
export class FunctionInstance {
  readonly accessKeyId: string;
  readonly #definition: FunctionDefinition;
  readonly #options: InstanceOptions;
  readonly #worker: Worker;
  readonly #ready: Promise<void>;
  #settleReady: Pending = { resolve: () => {}, reject: () => {} };
  #pending: Pending | undefined;
  /** Why the host ended the thread, if it did. */
  #endedBy: FunctionError | undefined;
  readonly #outbox: object[] = [];
  #partialLine = '';
  #exited = false;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#definition = options.definition;
    this.accessKeyId = options.accessKeyId;
    const { handlerFile, handlerName, name, arn, memoryMb } = options.definition;
    this.#ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve: () => resolve(), reject };
    });
    // `invoke` handles the rejection. Between invocations it must not be reported as unhandled.
    this.#ready.catch(() => {});
    this.#worker = new Worker(new URL('./function-thread.mjs', import.meta.url), {
      env: options.environment,
      argv: [],
      // `node --cpu-prof` writes a profile of each function, too.
      execArgv: process.execArgv.filter((option) => option.startsWith('--cpu-prof')),
      stdout: true,
      stderr: true,
      workerData: {
        clockOffset: options.clockOffset,
        handlerFile,
        handlerName,
        passedAddresses: options.passed.addresses,
        functionContext: {
          functionName: name,
          functionVersion: '$LATEST',
          invokedFunctionArn: arn,
          memoryLimitInMB: String(memoryMb),
          logGroupName: `/aws/lambda/${name}`,
          logStreamName: options.accessKeyId,
        },
      },
    });
    this.#worker.unref();
    this.#listen();
  }

  get alive(): boolean {
    return !this.#exited && this.#endedBy === undefined;
  }

  async invoke(eventJson: string, requestContext: Record<string, unknown>, traceHeader: string): Promise<string> {
    this.#worker.ref();
    try {
      await this.#within(INIT_TIMEOUT_MS, this.#ready);
      const timeoutMs = this.#definition.timeoutMs;
      const result = new Promise<string>((resolve, reject) => {
        this.#pending = { resolve, reject };
      });
      this.#send({ kind: 'invoke', eventJson, requestContext, traceHeader, deadlineMs: Date.now() + timeoutMs });
      return await this.#within(timeoutMs, result);
    } finally {
      this.#pending = undefined;
      this.#worker.unref();
    }
  }

  /** Ends the thread like a crash of the runtime. Resolves when it has ended. */
  async crash(): Promise<void> {
    await this.#end(new FunctionError('Runtime.ExitError', 'Runtime exited with error: signal: killed'));
  }

  /** Ends the thread when the work exceeds its limit, as Lambda does. */
  async #within<T>(limitMs: number, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      const seconds = (limitMs / 1000).toFixed(2);
      void this.#end(new FunctionError('Sandbox.Timedout', `Task timed out after ${seconds} seconds`));
    }, limitMs);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  async #end(reason: FunctionError): Promise<void> {
    this.#endedBy ??= reason;
    this.#fail(this.#endedBy);
    await this.#worker.terminate();
  }

  #fail(error: Error): void {
    this.#settleReady.reject(error);
    this.#pending?.reject(error);
    this.#pending = undefined;
  }

  #listen(): void {
    this.#worker.on('message', (messages: ThreadMessage[]) => {
      for (const message of messages) this.#receive(message);
    });
    this.#worker.on('error', (error: unknown) => {
      this.#exited = true;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#options.onLine(text);
      this.#fail(new FunctionError('Runtime.ExitError', `Runtime exited with error: ${firstLine(text)}`));
    });
    this.#worker.on('exit', (code) => {
      this.#exited = true;
      this.#fail(this.#endedBy ?? new FunctionError('Runtime.ExitError', `Runtime exited with exit status ${code}`));
      if (this.#partialLine) this.#options.onLine(this.#partialLine);
      this.#options.onExit();
    });
    for (const stream of [this.#worker.stdout, this.#worker.stderr]) {
      stream.on('data', (chunk: Buffer) => this.#log(chunk.toString()));
    }
  }

  #receive(message: ThreadMessage): void {
    if (message.kind === 'ready') this.#settleReady.resolve('');
    else if (message.kind === 'log') this.#log(message.text);
    else if (message.kind === 'result') {
      this.#options.onCpuTime(message.cpuMs);
      this.#pending?.resolve(message.resultJson);
    } else if ('error' in message) this.#receiveError(message.kind, message.error);
    else this.#answer(message);
  }

  #answer(request: PassedRequest): void {
    const { id } = request;
    this.#options.passed.serve(request, {
      send: ({ status, headers, body, cut }) => {
        const sent = typeof body === 'string' ? body : Uint8Array.from(body);
        this.#send({ kind: 'reply', id, status, headers, body: sent, cut });
      },
      lose: () => this.#send({ kind: 'reply', id, lost: true }),
    });
  }

  /** What is sent in the same tick is one message, because each message wakes the thread. */
  #send(message: object): void {
    if (this.#outbox.push(message) === 1) process.nextTick(() => this.#worker.postMessage(this.#outbox.splice(0)));
  }

  #receiveError(kind: 'error' | 'failed', { errorType, message, stack }: ThreadError): void {
    this.#options.onLine(stack ?? `${errorType}: ${message}`);
    const error = new FunctionError(errorType, message);
    // A thread without a handler is useless. The next invocation starts a new one.
    if (kind === 'failed') void this.#end(error);
    else this.#fail(error);
  }

  #log(text: string): void {
    const lines = (this.#partialLine + text).split('\n');
    this.#partialLine = lines.pop() ?? '';
    for (const line of lines) if (line !== '') this.#options.onLine(line);
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}
