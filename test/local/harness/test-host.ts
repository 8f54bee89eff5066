import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { REGION } from '../../../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../../../local/aws/aws-endpoint.ts';
import { type Host, startHost } from '../../../local/host/host.ts';
import { type Assembly, readAssembly } from '../../../local/template/synthesize.ts';
import { eventually } from './eventually.ts';
import { HostClient, type ShownRun } from './host-client.ts';

interface TestHostOptions {
  /** Continue with the data of an earlier host; the caller removes the folder. */
  dataFolder?: string;
  /** The template to host instead, made from the synthesized one. */
  change?: (assembly: Assembly) => Assembly;
}

/** Longer than any lease, and longer than the time a ready step may wait for its message. */
const PAST_ANY_LEASE_MS = 61_000;
/** After the time of this many leases, every retry, resend and lease of a run has ended. */
const ROUNDS_MAX = 30;

let shared: TestHost | undefined;

/** From now on, `startTestHost` gives this host to who wants no other template and no other data (`onOneHost`). */
export function shareHost(host: TestHost | undefined): void {
  shared = host;
}

/** The whole system in this process, on the template synthesized for this test run. */
export async function startTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  if (shared && Object.keys(options).length === 0) return shared;
  const dataFolder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'countersign-test-'));
  const synthesized = readAssembly(inject('assemblies').local);
  const log: string[] = [];
  const host = await startHost({
    port: 0,
    dataFolder,
    assembly: options.change?.(synthesized) ?? synthesized,
    log: (source, line) => log.push(`${source}: ${line}`),
  });
  return new TestHost(host, dataFolder, options.dataFolder === undefined, log);
}

export class TestHost extends HostClient {
  readonly dataFolder: string;
  /** The log lines of functions and host. */
  readonly log: readonly string[];
  readonly stack: Host['stack'];
  readonly cloudWatch: Host['cloudWatch'];
  readonly #host: Host;
  readonly #ownsFolder: boolean;

  constructor(host: Host, dataFolder: string, ownsFolder: boolean, log: readonly string[]) {
    super(host.url);
    this.#host = host;
    this.dataFolder = dataFolder;
    this.#ownsFolder = ownsFolder;
    this.log = log;
    this.stack = host.stack;
    this.cloudWatch = host.cloudWatch;
  }

  /** Files that share a host leave it to the others. */
  async stop(): Promise<void> {
    if (this === shared) return;
    await this.#host.stop();
    if (this.#ownsFolder) rmSync(this.dataFolder, { recursive: true, force: true });
  }

  /** For any AWS client: as the host itself, or with the access key of a function's thread. */
  clientConfig(credentials = HOST_CREDENTIALS) {
    return { endpoint: this.#host.awsEndpointUrl, region: REGION, credentials, maxAttempts: 1, forcePathStyle: true };
  }

  get tableName(): string {
    return this.only('AWS::DynamoDB::GlobalTable').ref;
  }

  /** The one resource of this type whose logical id starts so. */
  only(type: string, logicalIdStart = '') {
    const found = this.stack.ofType(type).filter(({ logicalId }) => logicalId.startsWith(logicalIdStart));
    const [one, ...others] = found;
    if (!one || others.length > 0) throw new Error(`there are ${found.length} of ${type} ${logicalIdStart}`);
    return one;
  }

  /** Until no message waits to be received and no function works: nothing happens now unless time passes. */
  async idle(options: { withinMs?: number } = {}): Promise<void> {
    const idle = async () => (await this.ask<{ idle: boolean }>('GET', '/_local/idle')).idle || undefined;
    await eventually('the host is idle', idle, options);
  }

  /**
   * Advances the clock by one lease at a time, only while no function runs (functions use real time), until all of these runs are
   * as wanted. The sweeper runs each time, because more than a minute passes.
   */
  async letTimePassUntil(
    runIds: readonly string[],
    wanted: (run: ShownRun) => boolean,
    options: { withinMs?: number } = {},
  ): Promise<ShownRun[]> {
    const asWanted = new Map<string, ShownRun>();
    for (let round = 0; ; round += 1) {
      await this.idle(options);
      // One after the other, up to the first that is not there yet: a second request at the same time would start threads.
      const open = await this.#firstOpen(runIds, wanted, asWanted);
      if (!open) return runIds.flatMap((runId) => asWanted.get(runId) ?? []);
      if (round === ROUNDS_MAX) throw new Error(`still not there: ${JSON.stringify(open, null, 1)}`);
      await this.advance(PAST_ANY_LEASE_MS);
    }
  }

  async #firstOpen(runIds: readonly string[], wanted: (run: ShownRun) => boolean, asWanted: Map<string, ShownRun>) {
    for (const runId of runIds.filter((each) => !asWanted.has(each))) {
      const run = await this.waitForRun(runId, () => true);
      if (!wanted(run)) return run;
      asWanted.set(runId, run);
    }
    return undefined;
  }
}
