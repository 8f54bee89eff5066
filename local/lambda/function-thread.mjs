// Runs in a worker thread and does the work of the Lambda runtime. It is plain JavaScript, because a thread that strips types
// first starts later, and an invocation waits for the replacement of a crashed thread.
import { enableCompileCache, flushCompileCache } from 'node:module';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { passRequests } from './host-requests.mjs';

const { clockOffset, handlerFile, handlerName, functionContext, passedAddresses } = workerData;
// Beside the bundles. The first thread compiles a bundle for all others, of every host of this assembly.
enableCompileCache(join(dirname(dirname(handlerFile)), 'compile-cache'));
const RealDate = Date;

// All function threads wait for the one thread of the host. With the same priority, each message that wakes a function also interrupts
// the host, even if another core is free: cores are then idle for 11 % of the time instead of 5 %. Only Linux has priorities of threads.
const NICENESS = 5;
if (process.platform === 'linux') setPriority(NICENESS);

// What is sent in the same tick is one message, because each message wakes the host.
const outbox = [];
const send = (message) => {
  if (outbox.push(message) === 1) process.nextTick(() => parentPort.postMessage(outbox.splice(0)));
};

// Log lines use the same port as results, so that a caller with the result also has the log and its metrics.
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (chunk, encoding, done) => {
    send({ kind: 'log', text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString() });
    const callback = typeof encoding === 'function' ? encoding : done;
    if (callback) queueMicrotask(callback);
    return true;
  };
}

followHostClock();
const receiveReply = passRequests(passedAddresses, send);
const handler = await loadHandler();
if (handler) {
  parentPort.on('message', (messages) => {
    for (const message of messages) {
      if (message.kind === 'reply') receiveReply(message);
      else invoke(message);
    }
  });
  send({ kind: 'ready' });
}

/** Changes only the current time of Date; timers and performance.now stay real. Not a Proxy, because a Proxy would slow down every use of Date. */
function followHostClock() {
  const now = () => RealDate.now() + clockOffset[0];
  function HostDate(...values) {
    if (!new.target) return new RealDate(now()).toString();
    return Reflect.construct(RealDate, values.length > 0 ? values : [now()], new.target);
  }
  HostDate.prototype = RealDate.prototype;
  Object.assign(HostDate, { now, parse: RealDate.parse, UTC: RealDate.UTC });
  RealDate.prototype.constructor = HostDate;
  globalThis.Date = HostDate;
}

async function loadHandler() {
  try {
    const module = await import(pathToFileURL(handlerFile).href);
    flushCompileCache();
    if (typeof module[handlerName] === 'function') return module[handlerName];
    const message = `${handlerFile} exports no function ${handlerName}`;
    send({ kind: 'failed', error: { errorType: 'Runtime.HandlerNotFound', message } });
  } catch (error) {
    send({ kind: 'failed', error: described(error) });
  }
  return undefined;
}

async function invoke({ eventJson, requestContext, traceHeader, deadlineMs }) {
  // The SDK sends it with every request. Lambda detects loops with it.
  process.env._X_AMZN_TRACE_ID = traceHeader;
  const context = {
    callbackWaitsForEmptyEventLoop: true,
    ...functionContext,
    ...requestContext,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - RealDate.now()),
  };
  const cpuBefore = process.threadCpuUsage();
  try {
    const result = await handler(JSON.parse(eventJson), context);
    // Lambda returns null for undefined, and fails if the result is not JSON.
    const resultJson = JSON.stringify(result) ?? 'null';
    const { user, system } = process.threadCpuUsage(cpuBefore);
    send({ kind: 'result', resultJson, cpuMs: (user + system) / 1000 });
  } catch (error) {
    send({ kind: 'error', error: described(error) });
  }
}

function described(error) {
  if (error instanceof Error) return { errorType: error.name, message: error.message, stack: error.stack };
  return { errorType: typeof error, message: String(error) };
}
