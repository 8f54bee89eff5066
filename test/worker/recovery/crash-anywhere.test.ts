import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Passage } from '../../fakes/passage.ts';
import { POST, TRIAGE } from '../workflows.ts';
import { die, ISSUE, type RunNow, SYS_ID, Workshop } from '../workshop.ts';

/** Killed before or after a call took effect; the call failed, or worked and its answer was lost. */
const FAULTS = ['killed before', 'killed after', 'failed', 'answer lost'] as const;
type Fault = (typeof FAULTS)[number];

const SEED = 20_260_102;

let shop: Workshop;
beforeEach(() => open());
afterEach(() => vi.unstubAllGlobals());

function open(): void {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
}

/** Injects the fault at these calls, counted from 1. */
function withFaults(faults: ReadonlyMap<number, Fault>, passed: string[] = []): Passage {
  let count = 0;
  return async (name, run) => {
    passed.push(name);
    count += 1;
    const fault = faults.get(count);
    if (fault === 'killed before') return die();
    if (fault === 'failed') throw new Error(`${name} failed, as ordered`);
    const result = await run();
    if (fault === 'killed after') return die();
    if (fault === 'answer lost') throw new Error(`the answer of ${name} was lost, as ordered`);
    return result;
  };
}

/** Runs the workflow to its end, with faults on the way. */
async function story(yaml: string, faults: ReadonlyMap<number, Fault>): Promise<RunNow & { passed: string[] }> {
  open();
  const message = await shop.begin(yaml);
  await shop.queue.send(message);
  const passed: string[] = [];
  shop.disturb(withFaults(faults, passed));
  const now = await shop.finish(message);
  return { ...now, passed };
}

function writtenOnce(): void {
  const { fields, workNotes } = shop.outside.incidents.get(SYS_ID) ?? { fields: {}, workNotes: [] };
  expect(fields.category).toBe('database');
  expect(workNotes).toHaveLength(1);
  expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'triage']);
}

describe('a run survives one fault at any of its calls and makes each write once', () => {
  it.each(FAULTS)('%s', async (fault) => {
    const { passed } = await story(TRIAGE, new Map());
    for (const [index, name] of passed.entries()) {
      const { run, receipts } = await story(TRIAGE, new Map([[index + 1, fault]]));
      expect([name, run.status]).toEqual([name, 'succeeded']);
      expect(receipts.map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded', 'succeeded']);
      writtenOnce();
      expect(shop.evidence.keys()).toHaveLength(1);
    }
  });
});

it.each(FAULTS)('a Slack message is posted once, even if a call is %s', async (fault) => {
  const { passed } = await story(POST, new Map());
  for (const [index, name] of passed.entries()) {
    const { run } = await story(POST, new Map([[index + 1, fault]]));
    const messages = shop.outside.channels.get('#incidents') ?? [];
    expect([name, run.status, messages.length]).toEqual([name, 'succeeded', 1]);
  }
});

it('a run survives several faults: it ends, its chain is intact, and no write is made twice', async () => {
  const faults = fc.dictionary(fc.integer({ min: 1, max: 60 }).map(String), fc.constantFrom(...FAULTS), {
    maxKeys: 6,
  });
  await fc.assert(
    fc.asyncProperty(faults, async (ordered) => {
      const { run } = await story(TRIAGE, new Map(Object.entries(ordered).map(([at, fault]) => [Number(at), fault])));
      expect(['succeeded', 'needs_human']).toContain(run.status);
      expect(shop.outside.incidents.get(SYS_ID)?.workNotes.length).toBeLessThanOrEqual(1);
      if (run.status === 'succeeded') writtenOnce();
    }),
    { seed: SEED, numRuns: 150 },
  );
});
