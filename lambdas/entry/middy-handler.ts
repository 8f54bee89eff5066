import middy from '@middy/core';

/**
 * Every function starts here. By default middy returns a response 5 ms before the function's timeout while the handler
 * continues in the sandbox's next invocation, after its lease has expired. With early timeouts off, Lambda stops the
 * sandbox at the timeout, and the next worker recovers an unfinished write from its intent.
 */
export const functionHandler = <Event, Result>() => middy<Event, Result>({ timeoutEarlyInMillis: 0 });
