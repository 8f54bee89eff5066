// Runs inside a worker thread: what the Lambda runtime does around a handler. Plain JavaScript, because a thread that
// must strip types first starts noticeably later, and a crashed thread is replaced while someone waits.
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';

const { clockOffset, handlerFile, handlerName, functionContext } = workerData;
const RealDate = Date;

// Lines travel on the same port as results, so a caller that has the result has the log (and its metrics) too.
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (chunk, encoding, done) => {
    parentPort.postMessage({ kind: 'log', text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString() });
    const callback = typeof encoding === 'function' ? encoding : done;
    if (callback) queueMicrotask(callback);
    return true;
  };
}

followHostClock();
const handler = await loadHandler();
if (handler) {
  parentPort.on('message', invoke);
  parentPort.postMessage({ kind: 'ready' });
}

/** Only "now" is moved. Timers and performance.now stay real; every other use of Date is the original. */
function followHostClock() {
  const now = () => RealDate.now() + clockOffset[0];
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, values, newTarget) =>
      Reflect.construct(target, values.length > 0 ? values : [now()], newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, property) => (property === 'now' ? now : Reflect.get(target, property)),
  });
  RealDate.prototype.constructor = globalThis.Date;
}

async function loadHandler() {
  try {
    const module = await import(pathToFileURL(handlerFile).href);
    if (typeof module[handlerName] === 'function') return module[handlerName];
    const message = `${handlerFile} exports no function ${handlerName}`;
    parentPort.postMessage({ kind: 'failed', error: { errorType: 'Runtime.HandlerNotFound', message } });
  } catch (error) {
    parentPort.postMessage({ kind: 'failed', error: described(error) });
  }
  return undefined;
}

async function invoke({ eventJson, requestContext, traceHeader, deadlineMs }) {
  // The SDK sends it along with every request, which is how Lambda finds loops.
  process.env._X_AMZN_TRACE_ID = traceHeader;
  const context = {
    callbackWaitsForEmptyEventLoop: true,
    ...functionContext,
    ...requestContext,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - RealDate.now()),
  };
  try {
    const result = await handler(JSON.parse(eventJson), context);
    // Lambda answers null for undefined, and fails where JSON cannot express the result.
    parentPort.postMessage({ kind: 'result', resultJson: JSON.stringify(result) ?? 'null' });
  } catch (error) {
    parentPort.postMessage({ kind: 'error', error: described(error) });
  }
}

function described(error) {
  if (error instanceof Error) return { errorType: error.name, message: error.message, stack: error.stack };
  return { errorType: typeof error, message: String(error) };
}
