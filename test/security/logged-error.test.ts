import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { loggedError } from '../../lambdas/entry/logged-error.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import { evaluate } from '../../lambdas/workflow/expressions/evaluate.ts';

const CANARY = 'canary-person';

const thrownBy = async (act: () => unknown): Promise<unknown> => {
  try {
    await act();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
};

it('shows the code, message and stack of a known error, and the types of its causes', () => {
  const reset = Object.assign(new Error(CANARY), { code: 'ECONNRESET' });
  const error = new CountersignError('OUTCOME_UNKNOWN', 'Slack did not answer', {
    cause: new TypeError(CANARY, { cause: reset }),
  });
  expect(loggedError(error)).toEqual({
    name: 'OUTCOME_UNKNOWN',
    code: 'OUTCOME_UNKNOWN',
    message: 'Slack did not answer',
    causes: [{ name: 'TypeError' }, { name: 'Error', code: 'ECONNRESET' }],
    stack: expect.arrayContaining([expect.stringContaining('logged-error.test.ts')]),
  });
});

it.each<[string, () => unknown]>([
  ['an expression that fails over a text', () => evaluate('$number(trigger.title)', { trigger: { title: CANARY } }, 0)],
  ['a text that is no JSON', () => JSON.parse(CANARY)],
  ['an unknown property', () => z.strictObject({}).parse({ [CANARY]: 1 })],
  ['a thrown text', () => Promise.reject(CANARY)],
  ['a thrown object', () => Promise.reject({ message: CANARY, code: 7 })],
  [
    'a row that DynamoDB returns with a failed condition',
    () => {
      const Item = { doc: { S: CANARY } };
      throw new ConditionalCheckFailedException({ message: 'The conditional request failed', Item, $metadata: {} });
    },
  ],
  [
    'an error with properties of its own',
    () => {
      throw Object.assign(new Error('failed'), { payload: CANARY, errors: [{ value: CANARY }] });
    },
  ],
])('does not quote %s', async (_what, act) => {
  const logged = loggedError(await thrownBy(act));
  expect(JSON.stringify(logged)).not.toContain(CANARY);
  expect(logged.message).not.toBe('');
});

it('stops after some causes of an endless chain', () => {
  const error = new Error('turning');
  error.cause = error;
  expect(loggedError(error)).toMatchObject({ causes: Array(5).fill({ name: 'Error' }) });
});

it('names the request to AWS that failed', () => {
  const error = new ConditionalCheckFailedException({ message: 'no', $metadata: { requestId: 'REQUEST1' } });
  expect(loggedError(error)).toMatchObject({ name: 'ConditionalCheckFailedException', requestId: 'REQUEST1' });
});
