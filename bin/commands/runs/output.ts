import { setTimeout as wait } from 'node:timers/promises';
import type { ResponseFrom } from '../../../client/api-client.ts';
import type { FeedOutput } from '../../../client/live-feed.ts';
import { type Api, Unavailable } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { findRunId } from './find-run.ts';

const POLL_EVERY_MS = 1_000;
/** A restart of the host or a short network failure does not end the command. */
const SILENCE_MAX_MS = 30_000;

type OutputPart = ResponseFrom<'GET /api/v1/runs/{id}/steps/{index}/output'>;

export const runsOutput: Command = {
  name: 'runs output',
  args: ['ID', '[STEP]'],
  description: 'print the output of the command of a step',
  details:
    'STEP is the id of the step or its number, from 0; a run with one command needs none. ID may be a prefix. Secrets are removed from output.\n' +
    'With --json, each chunk is one line.',
  options: { follow: { description: 'wait for more until the command has ended' } },
  async run(call) {
    const api = call.api();
    const runId = await findRunId(api, call.arg(0));
    const output = new CommandOutput(api, runId, call.arg(1) || (await onlyCommand(api, runId)));
    for (;;) {
      const part = await output.next(call);
      if (part && !part.more && (part.complete || !call.isSet('follow'))) return noteEnd(call, part, output);
      if (!part?.more) await wait(POLL_EVERY_MS);
    }
  },
};

async function onlyCommand(api: Api, id: string): Promise<string> {
  const { steps } = await api.call('GET /api/v1/runs/{id}', { params: { id } });
  const commands = steps.filter(({ tool }) => tool?.startsWith('agent.'));
  const [first, ...others] = commands;
  if (first && others.length === 0) return String(first.index);
  const names = commands.map((step) => step.id).join(', ');
  throw new Failure(
    EXIT.usage,
    names === '' ? 'the run has no command' : `the run has several commands; add one: ${names}`,
  );
}

/** Prints the output of the commands of a run, in whole lines, as it arrives. */
export class PrintedOutput {
  readonly #call: Call;
  /** By command: the end of its last line, which continues in the next chunk. */
  readonly #rests = new Map<string, { prefix: string; text: string }>();

  constructor(call: Call) {
    this.#call = call;
  }

  print({ step, payload: { stream_seq: seq, chunk_type: stream, data }, timestamp: at, meta }: FeedOutput): void {
    const { terminal, json } = this.#call;
    const { step_index: index, lease_version } = meta;
    if (json) {
      terminal.print(JSON.stringify({ step, index, seq, stream, at, data }));
      return;
    }
    const command = `${index}.${lease_version}`;
    const prefix = `${step ?? index} | `;
    const lines = ((this.#rests.get(command)?.text ?? '') + data).split('\n');
    this.#rests.set(command, { prefix, text: lines.pop() ?? '' });
    for (const line of lines) terminal.print(prefix + printable(line));
  }

  /** Prints lines that have no end yet, before something else is printed. */
  flush(): void {
    for (const { prefix, text } of this.#rests.values()) {
      if (text !== '') this.#call.terminal.print(prefix + printable(text));
    }
    this.#rests.clear();
  }
}

/** Reads the output of one command part by part, and prints whole lines. */
export class CommandOutput {
  readonly #api: Api;
  readonly #params: { id: string; index: string };
  readonly #prefix: string;
  #since = 0;
  /** The end of the last line, which continues in the next part. */
  #rest = '';
  #respondedAtMs: number | undefined;

  constructor(api: Api, id: string, index: string, prefix = '') {
    this.#api = api;
    this.#params = { id, index };
    this.#prefix = prefix;
  }

  /** Prints what is new. Undefined if the API does not respond for a moment. */
  async next(call: Call): Promise<OutputPart | undefined> {
    try {
      const query = { since: this.#since };
      const part = await this.#api.call('GET /api/v1/runs/{id}/steps/{index}/output', { params: this.#params, query });
      this.#respondedAtMs = Date.now();
      this.#since = part.next;
      this.#print(call, part);
      return part;
    } catch (error) {
      const patient = this.#respondedAtMs !== undefined && Date.now() - this.#respondedAtMs < SILENCE_MAX_MS;
      if (!(error instanceof Unavailable && patient)) throw error;
      call.terminal.note(`${error.message}; retrying`);
      return undefined;
    }
  }

  /** Output comes from another machine: what could control the terminal is replaced. */
  #print({ terminal, json }: Call, { chunks, step, index, complete }: OutputPart): void {
    if (json) {
      for (const chunk of chunks) terminal.print(JSON.stringify({ step, index, ...chunk }));
      return;
    }
    const lines = (this.#rest + chunks.map(({ data }) => data).join('')).split('\n');
    this.#rest = complete ? '' : (lines.pop() ?? '');
    if (lines.at(-1) === '' && complete) lines.pop();
    for (const line of lines) terminal.print(this.#prefix + printable(line));
  }

  /** Prints a line that has no end yet. */
  flush({ terminal, json }: Call): void {
    if (!json && this.#rest !== '') terminal.print(this.#prefix + printable(this.#rest));
    this.#rest = '';
  }
}

function noteEnd(call: Call, { complete, total }: OutputPart, output: CommandOutput) {
  output.flush(call);
  const { terminal, json } = call;
  if (json) return EXIT.ok;
  if (!complete) terminal.note('the command still runs; --follow waits for more');
  if (total?.complete === false) terminal.note('a part of the output did not arrive: the agent was lost');
  if (total && total.droppedBytes > 0) {
    terminal.note(`${total.droppedBytes} more bytes were not stored: the limit is 10 MB`);
  }
  return EXIT.ok;
}
