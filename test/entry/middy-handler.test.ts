import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Context } from 'aws-lambda';
import { afterEach, expect, it, vi } from 'vitest';
import { functionHandler } from '../../lambdas/entry/middy-handler.ts';

const LAMBDAS = join(import.meta.dirname, '..', '..', 'lambdas');

afterEach(() => {
  vi.useRealTimers();
});

it('middy returns no response before the handler does, even if the timeout is near', async () => {
  vi.useFakeTimers();
  const work = Promise.withResolvers<string>();
  const handler = functionHandler<unknown, string>().handler(() => work.promise);
  const answered = vi.fn();
  const context = { getRemainingTimeInMillis: () => 6 } as Context;
  const answer = Promise.resolve(handler({}, context)).finally(answered);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(answered).not.toHaveBeenCalled();
  work.resolve('done');
  await expect(answer).resolves.toBe('done');
});

it('every function uses middy through middy-handler.ts', () => {
  const files = readdirSync(LAMBDAS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const users = files.filter((file) => readFileSync(join(LAMBDAS, file), 'utf8').includes("'@middy/core'"));
  expect(users).toEqual([join('entry', 'middy-handler.ts')]);
});
