import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Passage } from '../fakes/passage.ts';
import { POST, TRIAGE } from './workflows.ts';
import { die, ISSUE, type RunNow, SYS_ID, Workshop } from './workshop.ts';

/** Killed before or after a call took effect; the call failed, or worked and its answer was lost. */
const MISHAPS = ['killed before', 'killed after', 'failed', 'answer lost'] as const;
type Mishap = (typeof MISHAPS)[number];

const SEED = 20_260_102;

let shop: Workshop;
beforeEach(() => open());
afterEach(() => vi.unstubAllGlobals());

function open(): void {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
}

/** Lets the given calls, counted from 1, suffer; all others pass. */
function befallen(mishaps: ReadonlyMap<number, Mishap>, passed: string[] = []): Passage {
  let count = 0;
  return async (name, run) => {
    passed.push(name);
    count += 1;
    const mishap = mishaps.get(count);
    if (mishap === 'killed before') return die();
    if (mishap === 'failed') throw new Error(`${name} failed, as ordered`);
    const result = await run();
    if (mishap === 'killed after') return die();
    if (mishap === 'answer lost') throw new Error(`the answer of ${name} was lost, as ordered`);
    return result;
  };
}

/** Runs the workflow to its end, with mishaps on the way. */
async function story(yaml: string, mishaps: ReadonlyMap<number, Mishap>): Promise<RunNow & { passed: string[] }> {
  open();
  const message = await shop.begin(yaml);
  await shop.queue.send(message);
  const passed: string[] = [];
  shop.disturb(befallen(mishaps, passed));
  const now = await shop.finish(message);
  return { ...now, passed };
}

function writtenOnce(): void {
  const { fields, workNotes } = shop.outside.incidents.get(SYS_ID) ?? { fields: {}, workNotes: [] };
  expect(fields.assignment_group).toBe('database');
  expect(workNotes).toHaveLength(1);
  expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'triage']);
}

describe('a run survives one mishap at any of its calls, and makes each write once', () => {
  it.each(MISHAPS)('%s', async (mishap) => {
    const { passed } = await story(TRIAGE, new Map());
    for (const [index, name] of passed.entries()) {
      const { run, receipts } = await story(TRIAGE, new Map([[index + 1, mishap]]));
      expect([name, run.status]).toEqual([name, 'succeeded']);
      expect(receipts.map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded', 'succeeded']);
      writtenOnce();
      expect(shop.evidence.keys()).toHaveLength(2);
    }
  });
});

it.each(MISHAPS)('a Slack message is posted once, whichever call is %s', async (mishap) => {
  const { passed } = await story(POST, new Map());
  for (const [index, name] of passed.entries()) {
    const { run } = await story(POST, new Map([[index + 1, mishap]]));
    const messages = shop.outside.channels.get('#incidents') ?? [];
    expect([name, run.status, messages.length]).toEqual([name, 'succeeded', 1]);
  }
});

it('survives any few mishaps: it ends, its chain is whole, and no write is made twice', async () => {
  const mishaps = fc.dictionary(fc.integer({ min: 1, max: 60 }).map(String), fc.constantFrom(...MISHAPS), {
    maxKeys: 6,
  });
  await fc.assert(
    fc.asyncProperty(mishaps, async (ordered) => {
      const { run } = await story(TRIAGE, new Map(Object.entries(ordered).map(([at, mishap]) => [Number(at), mishap])));
      expect(['succeeded', 'needs_human']).toContain(run.status);
      expect(shop.outside.incidents.get(SYS_ID)?.workNotes.length).toBeLessThanOrEqual(1);
      if (run.status === 'succeeded') writtenOnce();
    }),
    { seed: SEED, numRuns: 150 },
  );
});
