import middy from '@middy/core';

/**
 * Where every function begins. By default middy answers 5 ms before a function's time is up, while what the handler had
 * begun goes on in the sandbox's next invocation, long after its lease. Here nothing answers early: Lambda itself stops
 * the sandbox when its time is up, and what was in flight is recovered from its intent.
 */
export const functionHandler = <Event, Result>() => middy<Event, Result>({ timeoutEarlyInMillis: 0 });
