import * as z from 'zod';
import type { SimCall } from './exchange.ts';
import { BadRequest } from './exchange.ts';
import type { Collection, SimulatorStore } from './store.ts';
import { SURPRISES, SYSTEM_NAMES, type SystemName } from './system.ts';

const target = {
  system: z.enum(SYSTEM_NAMES),
  method: z.string().toUpperCase().optional(),
  /** Substring of the path within the system, query included. */
  path: z.string().min(1).optional(),
  /** Which of the matching calls from now on is the first to suffer, counted from 1. */
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
        `this system has no such surprise; there are: ${surprisesOf((input as { system: SystemName }).system).join(', ')}`,
    }),
  /** It acts, and answers 200 with this instead. */
  z.strictObject({ ...target, kind: z.literal('other_body'), body: z.unknown() }),
]);

export type Fault = z.infer<typeof faultSchema> & { id: string; seen: number; hits: number };
export type DelayFault = Extract<Fault, { kind: 'delay' }>;

/** What befalls one call: a delay may come with one other fault. */
export interface Befallen {
  delay?: DelayFault;
  fault?: Exclude<Fault, DelayFault>;
}

/** Faults that tests and people order; kept with the rest, so that a restarted host still owes them. */
export class Faults {
  readonly #store: SimulatorStore;
  readonly #faults: Collection<Fault>;
  /** Mirror of the stored ones: nearly every call finds it empty and pays nothing. */
  #armed: Fault[];

  constructor(store: SimulatorStore) {
    this.#store = store;
    this.#faults = store.collection<Fault>('fault');
    this.#armed = this.#faults.list();
  }

  order(body: unknown): Fault {
    const parsed = faultSchema.safeParse(body ?? {});
    if (!parsed.success) throw new BadRequest(z.prettifyError(parsed.error));
    return this.#store.transaction(() => {
      const fault = { ...parsed.data, id: `fault-${this.#store.next('fault')}`, seen: 0, hits: 0 };
      this.#save(fault);
      this.#armed.push(fault);
      return fault;
    });
  }

  list(): Fault[] {
    return this.#faults.list();
  }

  clear(): void {
    this.#store.transaction(() => {
      for (const fault of this.#armed) this.#faults.delete(fault.id);
    });
    this.#armed = [];
  }

  /** Counts the call against every matching fault and returns those it suffers; one that came too late stays armed. */
  befall(system: SystemName, call: SimCall): Befallen {
    const matching = this.#armed.filter((fault) => fault.hits < fault.times && matches(fault, system, call));
    if (matching.length === 0) return {};
    return this.#store.transaction(() => {
      const befallen: Befallen = {};
      for (const fault of matching) {
        fault.seen++;
        if (fault.seen >= fault.nth) take(fault, befallen);
        this.#save(fault);
      }
      return befallen;
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

function take(fault: Fault, befallen: Befallen): void {
  if (fault.kind === 'delay') {
    if (befallen.delay) return;
    befallen.delay = fault;
  } else {
    if (befallen.fault) return;
    befallen.fault = fault;
  }
  fault.hits++;
}
