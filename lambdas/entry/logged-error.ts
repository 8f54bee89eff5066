/** Longer than any chain of causes in this code. It also ends a circular chain. */
const CAUSES_MAX = 5;

/** The messages of these errors quote the parsed text. */
const QUOTING: readonly string[] = ['SyntaxError', 'ZodError'];

interface Known {
  name: string;
  code?: string;
}

/**
 * What the log shows of an error: name, code, stack and the message, which we or AWS wrote. Causes come from libraries,
 * whose messages and properties may quote payloads, rows and responses: only their names and codes are logged.
 */
export function loggedError(error: unknown) {
  if (!(error instanceof Error))
    return { name: 'Error', message: `a value that is not an Error was thrown: ${typeof error}` };
  const causes = causesOf(error);
  const requestId = (error as { $metadata?: { requestId?: unknown } }).$metadata?.requestId;
  return {
    ...known(error),
    message: QUOTING.includes(error.name) ? 'a text does not have the expected form' : error.message,
    ...(typeof requestId === 'string' && { requestId }),
    ...(causes.length > 0 && { causes }),
    // Without the first line, which repeats the message.
    stack: (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at ')),
  };
}

function causesOf(error: Error): Known[] {
  const causes: Known[] = [];
  for (let { cause } = error; cause !== undefined && causes.length < CAUSES_MAX; cause = (cause as Error).cause) {
    causes.push(known(cause));
    if (!(cause instanceof Error)) break;
  }
  return causes;
}

function known(error: unknown): Known {
  const name = error instanceof Error ? error.name : typeof error;
  const code = (error as { code?: unknown } | null)?.code;
  return { name, ...(typeof code === 'string' && { code }) };
}
