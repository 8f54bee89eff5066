/** Deep enough for any chain of ours, and an end to one that bites its own tail. */
const CAUSES_MAX = 5;

/** Parsers quote the text that they stumbled over. */
const QUOTING: readonly string[] = ['SyntaxError', 'ZodError'];

interface Known {
  name: string;
  code?: string;
}

/**
 * An error as the log shows it: what it is, where it came from, and the sentence that we or AWS wrote about it. What
 * others throw stands behind ours as its cause, with messages and properties that quote payloads, rows and answers: of
 * those only names and codes are shown.
 */
export function loggedError(error: unknown) {
  if (!(error instanceof Error))
    return { name: 'Error', message: `something that is no error was thrown: ${typeof error}` };
  const causes = causesOf(error);
  const requestId = (error as { $metadata?: { requestId?: unknown } }).$metadata?.requestId;
  return {
    ...known(error),
    message: QUOTING.includes(error.name) ? 'a text has another form than expected' : error.message,
    ...(typeof requestId === 'string' && { requestId }),
    ...(causes.length > 0 && { causes }),
    // Without its head, which repeats the message.
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
