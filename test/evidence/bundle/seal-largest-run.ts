import { setImmediate } from 'node:timers/promises';
import { type DynamoDBClient, QueryCommand, type QueryCommandInput } from '@aws-sdk/client-dynamodb';
import { sealRun } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { type Commit, genesisHash, sealCommit } from '../../../lambdas/run/commit.ts';
import { type Item, itemBytes, toItem } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import * as keys from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { DynamoRunStore } from '../../../lambdas/run/dynamo/dynamo-run-store.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import type { Step } from '../../../lambdas/run/step.ts';
import { RunTraces } from '../../../lambdas/telemetry/export-traces.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { noise } from '../../fakes/noise.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { peakMemoryMib } from '../peak-memory.ts';

/**
 * A separate process that seals the largest possible run, and prints what it wrote and its peak memory. Rows are created
 * when they are read, so that only the sealing is measured.
 */
const [, , STEPS = '1000', OUTPUT_BYTES = String(60 * 1024)] = process.argv;
const PAGE_BYTES = 1024 * 1024;
const [tenant, runId, at] = ['acme', 'run_00000001', '2026-01-02T03:04:05.000Z'];

const outputOf = (index: number) => ({ text: noise(String(index), Number(OUTPUT_BYTES)) });
const idOf = (index: number) => `step-${index}`;
const trigger = { source: 'github', event: 'issues.opened', fields: {}, payload: { a: 1 }, receivedAt: at };
const commits: Commit[] = [];

function add(...events: CommitEvent[]): void {
  const prevHash = commits.at(-1)?.hash ?? genesisHash(tenant, runId);
  commits.push(sealCommit({ seq: commits.length + 1, prevHash, at, events }));
}

const BY = { initiator: 'system', actor: 'worker' } as const;
const workflow = { name: 'largest', version: 1 };
const accepted = { automation: 'largest', workflow, source: 'github', event: 'issues.opened', key: 'k' };
add({ type: 'run.accepted', ...accepted, triggerHash: hashOf(trigger.payload) });
add(
  { type: 'run.status_changed', from: 'queued', to: 'enriching', ...BY },
  { type: 'run.status_changed', from: 'enriching', to: 'ready', ...BY },
  { type: 'run.status_changed', from: 'ready', to: 'running', ...BY },
);
for (let index = 0; index < Number(STEPS); index += 1) {
  add({ type: 'step.succeeded', step: idOf(index), index, outputHash: hashOf(outputOf(index)) });
}
add({ type: 'run.status_changed', from: 'running', to: 'succeeded', ...BY });

const run = {
  schemaVersion: 1,
  tenant,
  runId,
  automation: 'largest',
  workspace: 'default',
  workflow,
  trigger: { source: 'github', event: 'issues.opened', key: 'k' },
  status: 'succeeded',
  seq: commits.length,
  headHash: commits.at(-1)?.hash,
  writes: 0,
  createdAt: at,
  updatedAt: at,
  completedAt: at,
  durationMs: 0,
  deadlineAt: at,
};

function stepItem(index: number): Item {
  const facts = { schemaVersion: 1, index, id: idOf(index), tool: 'transform', attempt: 0, leaseVersion: 0 } as const;
  const step: Step = { ...facts, updatedAt: at, status: 'succeeded', output: outputOf(index), completedAt: at };
  return toItem(keys.stepKey(tenant, runId, index), step);
}

/** In the order of their sort keys. */
function* items(): Generator<Item> {
  for (const commit of commits) yield toItem(keys.commitKey(tenant, runId, commit.seq), commit);
  yield toItem(keys.runKey(tenant, runId), run);
  for (let index = 0; index < Number(STEPS); index += 1) yield stepItem(index);
  yield toItem(keys.triggerKey(tenant, runId), trigger);
}

const unread = items();

/** Returns the rows of one reader, page by page. */
const client = {
  async send(command: { input: QueryCommandInput }) {
    await setImmediate();
    if (!(command instanceof QueryCommand)) return {};
    const Items: Item[] = [];
    for (let bytes = 0; bytes < PAGE_BYTES; ) {
      const next = unread.next();
      if (next.done) return { Items };
      Items.push(next.value);
      bytes += itemBytes(next.value);
    }
    return { Items, LastEvaluatedKey: Items.at(-1) };
  },
};

const sizes: Record<string, number> = {};
const store = {
  putOnce: async (key: string, content: Buffer) => {
    const file = key.split('/').at(-1) ?? '';
    sizes[key.includes('/bundles/') ? 'bundles.jsonl' : file] = content.length;
    return true;
  },
  get: () => Promise.reject(new Error('nothing is read back')),
};
const quiet = () => {};
const collector = async (spans: readonly unknown[]) => {
  sizes.spans = spans.length;
};
const quietPorts = {
  clock: new FakeClock(),
  sleep: async () => {},
  metrics: { record: quiet },
  log: { info: quiet, warn: quiet, error: quiet },
};
await sealRun(
  {
    runs: new DynamoRunStore(
      client as unknown as DynamoDBClient,
      'runs',
      { random: () => 0, sleep: async () => {} },
      new FakeClock(),
    ),
    store,
    exports: { store, artifacts: store, wanted: ['siem', 'artifacts'] },
    traces: new RunTraces({ ...quietPorts, collector }),
    texts: { keepTextsOf: async () => {} },
    signer: new SeededSigner(),
    clock: { now: () => Date.parse(at) },
    log: quietPorts.log,
  },
  { entryId: `${tenant}.${runId}.seal_evidence`, tenant, runId },
);
console.log(JSON.stringify({ sizes, peakMib: peakMemoryMib() }));
