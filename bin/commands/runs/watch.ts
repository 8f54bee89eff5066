import { setTimeout as wait } from 'node:timers/promises';
import type { Commit } from '../../../lambdas/run/commit.ts';
import { type Api, type RunEvents, Unavailable } from '../../client/api-client.ts';
import { duration } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { findRunId } from './find-run.ts';
import { CommandOutput } from './output.ts';
import { hasEnded } from './run-status.ts';

const POLL_EVERY_MS = 500;
/** A restart of the host or a short network failure does not end the watch. */
const SILENCE_MAX_MS = 30_000;

export const runsWatch: Command = {
  name: 'runs watch',
  args: ['ID'],
  description: 'print the events of a run, and the output of its commands, until it ends',
  details:
    'Exit code: 0 if the run succeeded, otherwise 1. Ctrl-C ends the watch, not the run.\n' +
    'With --json, each event is one line. ID may be a prefix.',
  options: {},
  async run(call) {
    const api = call.api();
    const runId = await findRunId(api, call.arg(0));
    const { printCommit } = await import('./print-commit.ts');
    const outputs = new RunningCommands(api, runId);
    const show = (commit: Commit, first: Commit) => {
      printCommit(call, runId, commit, first.at);
      outputs.take(commit);
    };
    const ended = await follow(api, runId, { show, between: () => outputs.print(call) }, call);
    if (!call.json) call.terminal.note(`${ended.status} after ${duration(ended.tookMs)}; ${hint(runId)}`);
    return ended.status === 'succeeded' ? EXIT.ok : EXIT.failed;
  },
};

/** The commands that agents run now. */
class RunningCommands {
  readonly #api: Api;
  readonly #runId: string;
  readonly #open = new Map<number, CommandOutput>();

  constructor(api: Api, runId: string) {
    this.#api = api;
    this.#runId = runId;
  }

  take({ events }: Commit): void {
    for (const event of events) {
      if (event.type !== 'step.assigned') continue;
      const { index, step } = event;
      this.#open.set(index, new CommandOutput(this.#api, this.#runId, String(index), `${step} | `));
    }
  }

  /** Prints what is new of each. */
  async print(call: Call): Promise<void> {
    for (const [index, output] of this.#open) {
      let part = await output.next(call);
      while (part?.more) part = await output.next(call);
      if (part?.complete) this.#open.delete(index);
    }
  }
}

const hint = (runId: string) => `details: npx countersign runs show ${runId.slice(0, 12)}`;

/** Shows each commit once, in order. Returns when the run has ended and all its commits were shown. */
async function follow(
  api: Api,
  runId: string,
  { show, between }: { show(commit: Commit, first: Commit): void; between(): Promise<void> },
  call: Call,
): Promise<{ status: string; tookMs: number }> {
  let first: Commit | undefined;
  let last: Commit | undefined;
  let respondedAtMs: number | undefined;
  for (;;) {
    let page: RunEvents | undefined;
    try {
      page = await api.call('GET /api/v1/runs/{id}/events', {
        params: { id: runId },
        query: { since: last?.seq ?? 0 },
      });
      respondedAtMs = Date.now();
    } catch (error) {
      const patient = respondedAtMs !== undefined && Date.now() - respondedAtMs < SILENCE_MAX_MS;
      if (!(error instanceof Unavailable && patient)) throw error;
      call.terminal.note(`${error.message}; retrying`);
    }
    // Before the event that ends a command, what it printed.
    await between();
    for (const commit of page?.commits ?? []) {
      first ??= commit;
      show(commit, first);
      last = commit;
    }
    if (page?.more) continue;
    if (page?.status === 'waiting_approval' && page.commits.length > 0) noteHowToDecide(call, runId);
    if (page && hasEnded(page.status)) {
      // A command that began and ended between two requests.
      await between();
      return { status: page.status, tookMs: Date.parse(last?.at ?? '') - Date.parse(first?.at ?? '') };
    }
    await wait(POLL_EVERY_MS);
  }
}

function noteHowToDecide({ terminal, json, url, isLocal }: Call, runId: string): void {
  if (json || !terminal.isInteractive) return;
  const slack = isLocal ? `at ${url}/_sim` : 'in Slack';
  terminal.note(`waiting for approval: decide ${slack}, or run npx countersign approvals show ${runId.slice(0, 12)}`);
}
