import type { Clock, Log } from '../entry/ports.ts';
import type { OutboxDispatcher } from '../outbox/outbox.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import type { Run, Trigger } from '../run/run.ts';
import type { LoadedRun, RunStore } from '../run/run-store.ts';
import type { TenantSettings } from '../run/settings/caps.ts';
import type { Steps } from '../run/step.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { StepQueue } from './step-queue.ts';

/** The ports needed to commit a change of a run and to send the messages that follow from it. */
export interface RunChanger {
  runs: RunStore;
  definitions: Pick<Definitions, 'workflow' | 'settings'>;
  queue: StepQueue;
  outbox: OutboxDispatcher;
  clock: Clock;
  log: Log;
  telemetry?: Telemetry;
}

/** A run as of the newest commit that this process has read or made. */
export interface RunState {
  run: Run;
  trigger: Trigger;
  workflow: PublishedWorkflow;
  /** As it is stored: the run may perform it in another mode. Absent if it is missing. */
  published?: PublishedWorkflow;
  settings: TenantSettings;
  steps: Steps;
  /** The run that this one replays. It has ended, so it does not change. */
  original?: LoadedRun;
}
