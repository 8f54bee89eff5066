import type { CountersignError } from '../run/errors.ts';
import { CountersignError as Refusal, refusalOf } from '../run/errors.ts';

/** What a function of the setup returns. A refusal is a result, so that its text reaches the caller. */
export type Reply<Result> = { result: Result } | { refused: Pick<CountersignError, 'code' | 'message'> };

export async function replyWith<Result>(work: () => Promise<Result>): Promise<Reply<Result>> {
  try {
    return { result: await work() };
  } catch (error) {
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    return { refused: { code: refusal.code, message: refusal.message } };
  }
}

/** The result of a reply; throws the refusal again. */
export function resultOf<Result>(reply: Reply<Result>): Result {
  if ('result' in reply) return reply.result;
  throw new Refusal(reply.refused.code, reply.refused.message);
}
