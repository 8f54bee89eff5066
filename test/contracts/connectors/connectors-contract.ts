import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Operation, WriteContext } from '../../../lambdas/connectors/connector.ts';
import { findOperation } from '../../../lambdas/connectors/registry.ts';
import type { WriteResult } from '../../../lambdas/run/receipt.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { EXAMPLES, type Example, MARK } from './connectors-examples.ts';
import { CREDENTIAL_CANARY, type Fault, type Outside, type System, TARGET_CANARY } from './connectors-outside.ts';

const SAYS = { message: TARGET_CANARY, error: { message: TARGET_CANARY } };
const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const LATER = { code: 'TARGET_REFUSED', retryable: true };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

type Failure = [what: string, fault: Fault, meaning: object];

/** Faults of the call that has the effect, and the outcome of a write; a failed read may be repeated. */
const ON_THE_WAY: Failure[] = [
  ['429 with Retry-After', { status: 429, retryAfterSeconds: 7, body: SAYS }, { ...LATER, retryAfterMs: 7_000 }],
  ['403', { status: 403, body: SAYS }, REFUSED],
  ['503', { status: 503, body: SAYS }, UNKNOWN],
  ['a lost response', 'lost_answer', UNKNOWN],
  ['a truncated answer', 'truncated', UNKNOWN],
];
/** Faults whose outcome depends on the response only, for every system. */
const IN_THE_ANSWER: Failure[] = [
  ['401', { status: 401, body: SAYS }, REFUSED],
  ['422', { status: 422, body: SAYS }, REFUSED],
  ['500', { status: 500, body: SAYS }, UNKNOWN],
  ['200 with a body of another shape', { body: { [TARGET_CANARY]: TARGET_CANARY } }, UNKNOWN],
];
/** Slack sends errors with status 200; for other systems such a body means nothing. */
const ERROR_BODY = { ok: false, status: 'failure', error: TARGET_CANARY, message: TARGET_CANARY };

/** The guarantees of every operation, checked with one example of each. */
export function describeConnectorsContract(
  name: string,
  open: () => Promise<Outside>,
  { everyAnswer }: { everyAnswer: boolean },
): void {
  describe.each(EXAMPLES.map((example) => [example.operation.tool, example] as const))(
    `%s, on ${name}`,
    (_, example) => {
      const { operation, method } = example;
      const system = operation.connection as System;
      let outside: Outside;
      let input: unknown;
      beforeEach(async () => {
        outside = await open();
        input = operation.parse(await example.input(outside));
      });
      afterEach(() => outside.close());

      const again = (differing: Partial<WriteContext> = {}) => perform(outside, operation, input, differing);
      const first = async () => again({ before: await readBefore(outside, operation, input) });
      const probe = () => watched(operation.probe?.(input, performance(outside, operation)));

      it('makes the write once', async () => {
        const was = await example.look(outside);
        const { output, response } = await first();
        expect(output).toEqual(example.output);
        expect(operation.output.parse(output)).toEqual(output);
        expect(await example.look(outside)).toEqual(example.shows);
        if (operation.effect === 'read') expect(was).toEqual(example.shows);
        else expect(was).not.toEqual(example.shows);
        for (const fact of Object.values(response)) expect(['string', 'number', 'boolean']).toContain(typeof fact);
      });

      it('proposes fields under the names of its input, so that people can edit them', () => {
        const proposal = operation.propose(input, 'acme');
        const { fields, key, target } = proposal;
        const unchanged = operation.parse(operation.edited(input, fields));
        expect(operation.propose(unchanged, 'acme')).toEqual(proposal);
        expect(key.length).toBeLessThan(512);
        expect(target.startsWith(`${system}:`)).toBe(true);
      });

      it('marks the fields that select its target as fixed, so that nobody is offered to edit them', () => {
        const { fields, target } = operation.propose(input, 'acme');
        for (const [name, value] of Object.entries(fields)) {
          if (operation.fixed?.includes(name)) continue;
          const other = typeof value === 'number' ? value + 1 : typeof value === 'string' ? `${value}x` : value;
          const edited = attempt(() => operation.parse(operation.edited(input, { [name]: other })));
          if (edited !== undefined) expect(operation.propose(edited, 'acme').target).toBe(target);
        }
      });

      it('is undone by its reversal, which restores the state before', async () => {
        const was = await example.look(outside);
        const { reversal } = await first();
        if (!('tool' in reversal)) {
          expect(operation.reversible).toBe(false);
          expect(reversal.irreversible).not.toBe('');
          return;
        }
        const inverse = findOperation(reversal.tool) as Operation;
        const undoing = inverse.parse(reversal.input);
        const found = await readBefore(outside, inverse, undoing);
        if (inverse.before) expect(found).toEqual(reversal.expects);
        await perform(outside, inverse, undoing, { before: found, mark: 'countersign:undo' });
        expect(await example.look(outside)).toEqual(was);
      });

      it.each(failuresOf(example, everyAnswer))(
        'takes %s for what it means, and asks no second time',
        async (_what, fault, meaning) => {
          const found = await readBefore(outside, operation, input);
          const calls = await outside.calls(system, method);
          await outside.fault(system, method, fault);
          await expect(again({ before: found })).rejects.toMatchObject(meaning);
          expect(await outside.calls(system, method)).toBe(calls + 1);
        },
      );

      if (operation.effect === 'natural') {
        it('has the same effect when it is repeated after a lost response', async () => {
          await outside.fault(system, method, 'lost_answer');
          await expect(first()).rejects.toMatchObject(UNKNOWN);
          await again();
          expect(await example.look(outside)).toEqual(example.shows);
        });
      }
      if (operation.before) describeBefore();
      if (operation.probe) describeProbe();

      function describeBefore(): void {
        it('reads the current values before the write, and the proposed ones after it', async () => {
          const found = await readBefore(outside, operation, input);
          const result = await again({ before: found });
          const { after } = operation.propose(input, 'acme');
          expect(result.before).toEqual(found);
          expect(after).not.toEqual(found);
          expect(await readBefore(outside, operation, input)).toEqual(after);
        });

        if (operation.inspect) {
          it('shows people the state that it reads before the write', async () => {
            const { access } = performance(outside, operation);
            const { before } = (await watched(operation.inspect?.(input, access))) ?? {};
            expect(before).toEqual(await readBefore(outside, operation, input));
          });
        }

        it('has no before state and no reversal if an earlier attempt may have worked', async () => {
          const { before: claimed, reversal } = await again();
          expect(claimed).toBeUndefined();
          expect(reversal).toHaveProperty('irreversible');
        });

        it.each<Fault>([{ status: 503, body: SAYS }, 'lost_answer', 'truncated'])(
          'takes a read that met %j as a refusal to be tried again',
          async (fault) => {
            await outside.fault(system, 'GET', fault);
            await expect(readBefore(outside, operation, input)).rejects.toMatchObject(LATER);
          },
        );
      }

      function describeProbe(): void {
        it('finds its write and the reversal after a lost response', async () => {
          await outside.fault(system, method, 'lost_answer');
          await expect(first()).rejects.toMatchObject(UNKNOWN);
          expect(await probe()).toMatchObject({ recovered: true, output: example.output });
          expect(await example.look(outside)).toEqual(example.shows);
        });

        it('finds neither a write that was not made nor one with another mark', async () => {
          expect(await probe()).toBeUndefined();
          await again({ mark: 'countersign:another' });
          expect(await probe()).toBeUndefined();
        });

        it('treats a probe without a response as a refusal that can be retried', async () => {
          await outside.fault(system, 'GET', { status: 503, body: SAYS });
          await expect(probe()).rejects.toMatchObject(LATER);
        });
      }
    },
  );
}

/** Undefined if the edited value is invalid. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function failuresOf({ operation, answersNothing }: Example, everyAnswer: boolean): Failure[] {
  const inWords: Failure = [
    '200 with an error',
    { body: ERROR_BODY },
    operation.connection === 'slack' ? REFUSED : UNKNOWN,
  ];
  return [...ON_THE_WAY, ...(everyAnswer ? [...IN_THE_ANSWER, inWords] : [])]
    .filter(([, fault]) => !(answersNothing && fault === 'truncated'))
    .map(([what, fault, meaning]) => [
      what,
      fault,
      operation.effect === 'read' && meaning === UNKNOWN ? LATER : meaning,
    ]);
}

export function performance(
  outside: Outside,
  operation: Operation,
  differing: Partial<WriteContext> = {},
): WriteContext {
  const access = outside.access[operation.connection as System];
  return { access, mark: MARK, openSince: STORY_BEGINS_AT, ...differing };
}

/** One attempt, with what was read before it or without. */
export const perform = (
  outside: Outside,
  operation: Operation,
  input: unknown,
  differing: Partial<WriteContext> = {},
): Promise<WriteResult> =>
  watched(operation.perform(operation.parse(input), performance(outside, operation, differing)));

export const readBefore = (outside: Outside, operation: Operation, input: unknown) =>
  watched(operation.before?.(operation.parse(input), performance(outside, operation).access));

/** No result contains the credential or text of the target. */
async function watched<T>(work: Promise<T> | undefined): Promise<T> {
  try {
    const result = (await work) as T;
    expectNoCanary(JSON.stringify(result) ?? '');
    return result;
  } catch (error) {
    expectNoCanary(inspect(error, { depth: 10 }));
    throw error;
  }
}

function expectNoCanary(text: string): void {
  const inHeader = Buffer.from(`countersign:${CREDENTIAL_CANARY}`).toString('base64');
  for (const canary of [CREDENTIAL_CANARY, inHeader, TARGET_CANARY]) expect(text).not.toContain(canary);
}
