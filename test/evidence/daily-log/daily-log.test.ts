import { beforeEach, describe, expect, it } from 'vitest';
import {
  buildDayLog,
  DayLog,
  documentOf,
  logClaim,
  logDocumentKey,
} from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { openEnvelope } from '../../../lambdas/evidence/verify/open-envelope.ts';
import { signingKey, trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { allOf } from '../../fakes/all-of.ts';
import { crashesAt, type Passage } from '../../fakes/passage.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { LoggedDays } from './logged-days.ts';

let days: LoggedDays;
beforeEach(() => {
  days = new LoggedDays('2026-03-01T10:00:00.000Z');
});

function logOf(day: string, tenant = 'acme'): DayLog {
  return DayLog.parse(JSON.parse(String(days.store.peek(logDocumentKey(tenant, day)))));
}

const runsOf = (day: string) => logOf(day).entries.map(({ runId }) => runId);
const shaOf = (day: string) => sha256Hex(days.store.peek(logDocumentKey('acme', day)) ?? '');

describe('closing a day', () => {
  it('writes its bundles in the order of their sealing, with a signed root, after its end', async () => {
    await days.seal('run_b');
    days.clock.advance(1000);
    await days.seal('run_a');
    await days.seal('run_c');
    days.goTo('2026-03-01T23:59:59.999Z');
    expect(await days.close()).toEqual(['2026-02-28']);
    days.goTo('2026-03-02T00:15:00.000Z');
    expect(await days.close()).toEqual(['2026-03-01']);
    expect(runsOf('2026-03-01')).toEqual(['run_b', 'run_a', 'run_c']);
    expect(logOf('2026-03-01')).toMatchObject({ tenant: 'acme', size: 3 });

    const envelope = openEnvelope(days.store.peek('log/acme/2026-03-01.dsse.json') as Buffer);
    expect(signingKey(envelope, [trustedKey(days.signer.publicKey)])).toBeDefined();
    const { root, previous } = logOf('2026-03-01');
    expect(envelope.statement).toMatchObject({
      subject: [{ name: 'acme/2026-03-01', digest: { sha256: shaOf('2026-03-01') } }],
      predicate: { size: 3, root, previous, keyId: days.signer.keyId },
    });
  });

  it('waits until no sealer can still add an entry from before midnight', async () => {
    await days.close();
    days.goTo('2026-03-02T00:14:59.999Z');
    expect(await days.close()).toEqual([]);
    days.goTo('2026-03-02T00:15:00.000Z');
    expect(await days.close()).toEqual(['2026-03-01']);
  });

  it('chains the days, including days without a bundle', async () => {
    await days.seal('run_a');
    days.goTo('2026-03-04T06:00:00.000Z');
    expect(await days.close()).toEqual(['2026-03-01', '2026-03-02', '2026-03-03']);
    expect(logOf('2026-03-01').previous).toBeNull();
    expect(logOf('2026-03-02')).toMatchObject({
      size: 0,
      previous: { day: '2026-03-01', sha256: shaOf('2026-03-01') },
    });
    expect(logOf('2026-03-03').previous).toEqual({ day: '2026-03-02', sha256: shaOf('2026-03-02') });
  });

  it('writes a separate log for each tenant', async () => {
    await days.seal('run_a');
    await days.seal('run_g', { tenant: 'globex' });
    days.goTo('2026-03-02T06:00:00.000Z');
    await days.close('acme');
    await days.close('globex');
    expect(runsOf('2026-03-01')).toEqual(['run_a']);
    expect(logOf('2026-03-01', 'globex').entries.map(({ runId }) => runId)).toEqual(['run_g']);
  });

  it('starts with the earliest bundle of the last week, or with yesterday', async () => {
    days.goTo('2026-03-10T06:00:00.000Z');
    await days.seal('run_old', { at: '2026-03-04T12:00:00.000Z' });
    expect((await days.close())[0]).toBe('2026-03-04');
    expect(await days.close('globex')).toEqual(['2026-03-09']);
  });

  it('adds a bundle that was entered after its day was closed to the next day', async () => {
    days.goTo('2026-03-02T06:00:00.000Z');
    await days.close();
    await days.seal('run_late', { at: '2026-03-01T23:59:59.000Z' });
    await days.seal('run_a');
    days.goTo('2026-03-03T06:00:00.000Z');
    await days.close();
    expect(runsOf('2026-03-02')).toEqual(['run_late', 'run_a']);
    days.goTo('2026-03-04T06:00:00.000Z');
    await days.close();
    expect(runsOf('2026-03-03')).toEqual([]);
  });

  it('catches up after a long time, a month at a time', async () => {
    await days.close();
    days.goTo('2026-05-01T06:00:00.000Z');
    expect(await days.close()).toHaveLength(31);
    expect((await days.close()).at(-1)).toBe('2026-04-30');
    expect(await days.close()).toEqual([]);
  });
});

/** The number of calls to rows and bucket that closing these two days takes. */
const CALLS = 13;

describe('a crash while a day is closed', () => {
  const calls = Array.from({ length: CALLS }, (_, index) => index + 1);
  it.each(calls.flatMap((call) => [[call, 'before'] as const, [call, 'after'] as const]))(
    'at call %i, %s it took effect, changes nothing about the logs',
    async (call, when) => {
      const closed = async (dies?: Passage) => {
        const world = new LoggedDays('2026-03-01T10:00:00.000Z');
        await world.close();
        await world.seal('run_a');
        world.goTo('2026-03-02T10:00:00.000Z');
        await world.seal('run_b');
        world.goTo('2026-03-03T10:00:00.000Z');
        if (dies) {
          world.disturb(dies);
          await expect(world.close()).rejects.toThrow('crashed');
          world.disturb((_name, run) => run());
        }
        await world.close();
        return world.store.keys().map((key) => [key, String(world.store.peek(key))]);
      };
      expect(await closed(crashesAt(call, when))).toEqual(await closed());
    },
  );

  it('between writing and signing: the log is signed as it was written, without entries that were added since', async () => {
    await days.close();
    await days.seal('run_a');
    days.goTo('2026-03-02T10:00:00.000Z');
    days.disturb(async (name, run) => {
      const result = await run();
      if (name === 'evidence.putOnce') throw new Error('died');
      return result;
    });
    await expect(days.close()).rejects.toThrow('died');
    days.disturb((_name, run) => run());
    await days.seal('run_late', { at: '2026-03-01T23:59:59.000Z' });
    await days.close();
    days.goTo('2026-03-03T10:00:00.000Z');
    await days.close();
    expect([runsOf('2026-03-01'), runsOf('2026-03-02')]).toEqual([['run_a'], ['run_late']]);
  });
});

describe('an envelope that somebody else stored first', () => {
  const ENVELOPE_OF_DAY = 'log/acme/2026-03-01.dsse.json';

  it.each<[string, () => Promise<Buffer> | Buffer]>([
    ['nothing', () => Buffer.from('{}')],
    ['the signature of another day', () => days.store.peek('log/acme/2026-02-28.dsse.json') ?? Buffer.alloc(0)],
    [
      'a signature by another key',
      async () => {
        const previous = { day: '2026-02-28', sha256: shaOf('2026-02-28') };
        const log = buildDayLog({ tenant: 'acme', day: '2026-03-01', previous, entries: [] });
        return signClaim(logClaim(log, sha256Hex(documentOf(log))), new SeededSigner('forger'));
      },
    ],
  ])('with %s does not close the day', async (_what, planted) => {
    await days.close();
    days.goTo('2026-03-02T10:00:00.000Z');
    await days.store.putOnce(ENVELOPE_OF_DAY, await planted(), 'application/json');
    await expect(days.close()).rejects.toMatchObject({
      code: 'CHAIN_BROKEN',
      message: expect.stringContaining(`${ENVELOPE_OF_DAY} is not a signature of this stage`),
    });
    expect(await days.rows.lastClosed('acme')).toMatchObject({ day: '2026-02-28' });
  });
});

describe('a log that somebody else stored first', () => {
  const forged = (change: (log: DayLog) => DayLog) => async () => {
    await days.close();
    await days.seal('run_a');
    days.goTo('2026-03-02T10:00:00.000Z');
    const entries = await allOf(days.rows.entries('acme', '2026-03-01'));
    const previous = { day: '2026-02-28', sha256: shaOf('2026-02-28') };
    const log = change(buildDayLog({ tenant: 'acme', day: '2026-03-01', previous, entries }));
    await days.store.putOnce('log/acme/2026-03-01.json', documentOf(log), 'application/json');
    await expect(days.close()).rejects.toMatchObject({ code: 'CHAIN_BROKEN' });
    expect(days.store.keys()).not.toContain('log/acme/2026-03-01.dsse.json');
  };
  const other = sha256Hex('other');

  it(
    'is not signed with an entry that was never sealed',
    forged((log) => buildDayLog({ ...log, entries: log.entries.map((entry) => ({ ...entry, sha256: other })) })),
  );
  it(
    'is not signed with another root',
    forged((log) => ({ ...log, root: other })),
  );
  it(
    'is not signed after another day before it',
    forged((log) => buildDayLog({ ...log, previous: { day: '2026-02-28', sha256: other } })),
  );
});
