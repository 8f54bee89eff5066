import * as z from 'zod';
import type { SimCall } from './exchange.ts';
import { BadRequest } from './exchange.ts';
import type { Collection, SimulatorStore } from './store.ts';
import { SURPRISES, SYSTEM_NAMES, type SystemName } from './system.ts';

const target = {
  system: z.enum(SYSTEM_NAMES),
  method: z.string().toUpperCase().optional(),
  /** A part of the path within the system, with its query. */
  path: z.string().min(1).optional(),
  /** The first matching call that the fault affects, counted from 1. */
  nth: z.int().min(1).default(1),
  times: z.int().min(1).default(1),
};

const LONGEST_DELAY_MS = 600_000;

const surprisesOf = (system: SystemName): readonly string[] =>
  system in SURPRISES ? SURPRISES[system as keyof typeof SURPRISES] : [];

const faultSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    ...target,
    kind: z.literal('status'),
    status: z.int().min(400).max(599),
    body: z.unknown().optional(),
    retryAfterSeconds: z.int().min(0).optional(),
  }),
  z.strictObject({ ...target, kind: z.literal('delay'), delayMs: z.int().min(0).max(LONGEST_DELAY_MS) }),
  z.strictObject({ ...target, kind: z.literal('lost_answer') }),
  z.strictObject({ ...target, kind: z.literal('truncated_body') }),
  z
    .strictObject({ ...target, kind: z.literal('surprise'), surprise: z.enum(Object.values(SURPRISES).flat()) })
    .refine(({ system, surprise }) => surprisesOf(system).includes(surprise), {
      error: ({ input }) =>
        `unknown surprise for this system; it has: ${surprisesOf((input as { system: SystemName }).system).join(', ')}`,
    }),
  /** The call takes effect, but the response is 200 with this body. */
  z.strictObject({ ...target, kind: z.literal('other_body'), body: z.unknown() }),
]);

export type Fault = z.infer<typeof faultSchema> & { id: string; seen: number; hits: number };
type DelayFault = Extract<Fault, { kind: 'delay' }>;

/** The faults of one call: at most one delay and one other fault. */
interface CallFaults {
  delay?: DelayFault;
  fault?: Exclude<Fault, DelayFault>;
}

/** Faults that tests and people have added. They are stored, so that they survive a restart. */
export class Faults {
  readonly #store: SimulatorStore;
  readonly #faults: Collection<Fault>;
  /** A copy of the stored faults in memory, because nearly every call finds none. */
  #active: Fault[];

  constructor(store: SimulatorStore) {
    this.#store = store;
    this.#faults = store.collection<Fault>('fault');
    this.#active = this.#faults.list();
  }

  add(body: unknown): Fault {
    const parsed = faultSchema.safeParse(body ?? {});
    if (!parsed.success) throw new BadRequest(z.prettifyError(parsed.error));
    return this.#store.transaction(() => {
      const fault = { ...parsed.data, id: `fault-${this.#store.next('fault')}`, seen: 0, hits: 0 };
      this.#save(fault);
      this.#active.push(fault);
      return fault;
    });
  }

  list(): Fault[] {
    return this.#faults.list();
  }

  clear(): void {
    this.#store.transaction(() => {
      for (const fault of this.#active) this.#faults.delete(fault.id);
    });
    this.#active = [];
  }

  /** Counts the call for every matching fault, and returns the faults that affect it. */
  forCall(system: SystemName, call: SimCall): CallFaults {
    const matching = this.#active.filter((fault) => fault.hits < fault.times && matches(fault, system, call));
    if (matching.length === 0) return {};
    return this.#store.transaction(() => {
      const callFaults: CallFaults = {};
      for (const fault of matching) {
        fault.seen++;
        if (fault.seen >= fault.nth) apply(fault, callFaults);
        this.#save(fault);
      }
      return callFaults;
    });
  }

  #save(fault: Fault): void {
    this.#faults.put(fault.id, fault);
  }
}

function matches(fault: Fault, system: SystemName, call: SimCall): boolean {
  return (
    fault.system === system &&
    (fault.method === undefined || fault.method === call.method) &&
    (fault.path === undefined || call.path.includes(fault.path))
  );
}

function apply(fault: Fault, callFaults: CallFaults): void {
  if (fault.kind === 'delay') {
    if (callFaults.delay) return;
    callFaults.delay = fault;
  } else {
    if (callFaults.fault) return;
    callFaults.fault = fault;
  }
  fault.hits++;
}
