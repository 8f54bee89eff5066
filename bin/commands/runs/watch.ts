import { type FeedCommit, type FeedSocketConstructor, LiveFeed } from '../../../client/live-feed.ts';
import { Unavailable } from '../../client/api-client.ts';
import { duration } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { findRunId } from './find-run.ts';
import { PrintedOutput } from './output.ts';
import { hasEnded } from './run-status.ts';

/** Without the live feed. */
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
    const feed = new LiveFeed({ api, WebSocket: await openSocket(), pollEveryMs: POLL_EVERY_MS });
    try {
      const ended = await follow(feed, runId, printCommit, call);
      if (!call.json) call.terminal.note(`${ended.status} after ${duration(ended.tookMs)}; ${hint(runId)}`);
      return ended.status === 'succeeded' ? EXIT.ok : EXIT.failed;
    } finally {
      feed.close();
    }
  },
};

const hint = (runId: string) => `details: npx countersign runs show ${runId.slice(0, 12)}`;

type PrintCommit = typeof import('./print-commit.ts').printCommit;

/** Prints each commit once, in order, and what commands print. Resolves when the run has ended. */
function follow(
  feed: LiveFeed,
  runId: string,
  printCommit: PrintCommit,
  call: Call,
): Promise<{ status: string; tookMs: number }> {
  const output = new PrintedOutput(call);
  let first: FeedCommit | undefined;
  let last: FeedCommit | undefined;
  let silentSinceMs: number | undefined;
  let hasResponded = false;
  return new Promise((resolve, reject) => {
    feed.run(runId, {
      onCommit(commit) {
        [first, last, silentSinceMs, hasResponded] = [first ?? commit, commit, undefined, true];
        output.flush();
        printCommit(call, runId, commit, first.at);
      },
      onOutput: (chunk) => output.print(chunk),
      onStatus(status) {
        [silentSinceMs, hasResponded] = [undefined, true];
        if (hasEnded(status)) resolve({ status, tookMs: Date.parse(last?.at ?? '') - Date.parse(first?.at ?? '') });
        else if (status === 'waiting_approval') noteHowToDecide(call, runId);
      },
      onError(error) {
        silentSinceMs ??= Date.now();
        const patient = hasResponded && Date.now() - silentSinceMs < SILENCE_MAX_MS;
        if (!(error instanceof Unavailable && patient)) return reject(error);
        call.terminal.note(`${error.message}; retrying`);
      },
    });
  });
}

function noteHowToDecide({ terminal, json, url, isLocal }: Call, runId: string): void {
  if (json || !terminal.isInteractive) return;
  const slack = isLocal ? `at ${url}/_sim` : 'in Slack';
  terminal.note(`waiting for approval: decide ${slack}, or run npx countersign approvals show ${runId.slice(0, 12)}`);
}

/** Node.js 20 has no WebSocket of its own. */
async function openSocket(): Promise<FeedSocketConstructor> {
  const { WebSocket } = await import('ws');
  return WebSocket as unknown as FeedSocketConstructor;
}
