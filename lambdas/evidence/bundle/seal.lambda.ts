import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { DynamoOutputStore } from '../../agents/dynamo-output-store.ts';
import { redactArrived } from '../../agents/redact-arrived.ts';
import { S3OutputArchive } from '../../agents/s3-output-archive.ts';
import { storeOutput } from '../../agents/store-output.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { type Delivered, processTogether } from '../../entry/sqs-batch.ts';
import { systemClock, systemLog, systemPause } from '../../entry/system.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { TextArchive } from '../../pipeline/text-archive.ts';
import { readShippedPolicies } from '../../policy/shipped-policies.ts';
import { DynamoRunStore } from '../../run/dynamo/dynamo-run-store.ts';
import type { TerminalRun } from '../../run/run.ts';
import { awaitsResolution } from '../../run/statuses/ended-run.ts';
import { wireTraces } from '../../telemetry/traces.wiring.ts';
import { sealAddendum } from '../addendum/seal-addendum.ts';
import { SealEnvironment } from '../environment.ts';
import { exportSealedRun } from '../export/export-run.ts';
import { S3EvidenceStore } from '../s3-evidence-store.ts';
import { KmsSigner } from '../signing/kms-signer.ts';
import { sealRun, sealRuns } from './seal-run.ts';

const entry = { entryId: z.string(), tenant: z.string(), runId: z.string() };
const SealMessage = z.discriminatedUnion('kind', [
  /** `again`: the sweeper sent it, because the run was not sealed soon. */
  z.object({ kind: z.literal('seal_evidence'), ...entry, again: z.boolean().optional() }),
  z.object({ kind: z.literal('export_run'), ...entry }),
  z.object({ kind: z.literal('seal_addendum'), ...entry, seq: z.int() }),
  z.object({ kind: z.literal('store_output'), ...entry, stepIndex: z.int(), leaseVersion: z.int() }),
]);

const DAY_SECONDS = 24 * 60 * 60;

const environment = readEnvironment(SealEnvironment);
const { FINISHED_RUN_RETENTION_DAYS: retentionDays, TRACES_URL } = environment;

const s3 = new S3Client();
const dynamo = new DynamoDBClient();

const store = new S3EvidenceStore(s3, environment.EVIDENCE_BUCKET, systemPause);
const sealer = {
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
  store,
  texts: new TextArchive({
    store,
    definitions: new DynamoDefinitions(dynamo, environment.RUN_TABLE),
    shipped: readShippedPolicies,
    log: systemLog,
  }),
  exports: {
    store: new S3EvidenceStore(s3, environment.EXPORT_BUCKET, systemPause),
    artifacts: new S3EvidenceStore(s3, environment.EXPORT_BUCKET, systemPause, {
      encryptionKey: environment.VALUES_KEY_ARN,
    }),
    wanted: environment.EXPORTS,
  },
  traces: TRACES_URL === undefined ? undefined : wireTraces({ ...environment, TRACES_URL }),
  signer: new KmsSigner(new KMSClient(), environment),
  clock: systemClock,
  log: systemLog,
};

const outputs = {
  output: new DynamoOutputStore(dynamo, environment.RUN_TABLE, systemClock),
  archive: new S3OutputArchive(s3, environment.EXPORT_BUCKET),
  redact: redactArrived,
  clock: systemClock,
};

type SealMessage = z.infer<typeof SealMessage>;

/**
 * Seals the new runs of a batch together. Handles all other messages one after the other, because each may use most of the
 * memory. A message that was delivered or sent before is one of these: a run that failed then must not affect other runs again.
 */
async function seal(messages: readonly Delivered<SealMessage>[]): Promise<PromiseSettledResult<void>[]> {
  const results = new Map<SealMessage, PromiseSettledResult<void>>();
  const isNewRun = ({ message, deliveries }: Delivered<SealMessage>) =>
    message.kind === 'seal_evidence' && !message.again && deliveries === 1;
  const runs = messages.filter(isNewRun).map(({ message }) => message);
  for (const [index, sealed] of (await sealRuns(sealer, runs)).entries()) {
    const expired = sealed.status === 'rejected' ? Promise.reject(sealed.reason) : expire(sealed.value);
    const [result] = await Promise.allSettled([expired]);
    results.set(runs[index] as SealMessage, result);
  }
  for (const { message } of messages.filter((each) => !isNewRun(each))) {
    const [result] = await Promise.allSettled([sealAlone(message)]);
    results.set(message, result);
  }
  return messages.map(({ message }) => results.get(message) as PromiseSettledResult<void>);
}

async function sealAlone(message: SealMessage): Promise<void> {
  if (message.kind === 'export_run') return exportSealedRun(sealer, message);
  if (message.kind === 'store_output') {
    await storeOutput(outputs, message);
    return sealer.runs.completeOutboxEntry(message.entryId);
  }
  return expire(await (message.kind === 'seal_addendum' ? sealAddendum(sealer, message) : sealRun(sealer, message)));
}

async function expire(run: TerminalRun | undefined): Promise<void> {
  // Only a sealed run expires. After a failure the message is delivered again, and sealing again changes nothing. A run
  // with a write of unknown outcome stays until somebody has resolved it: its receipt blocks a key.
  if (run && retentionDays !== undefined && !awaitsResolution(run)) {
    const afterSeconds = Math.ceil(systemClock.now() / 1000) + retentionDays * DAY_SECONDS;
    await sealer.runs.expireRun(run.tenant, run.runId, afterSeconds);
  }
}

export const handler = functionHandler<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent) =>
  processTogether(event, SealMessage, seal, systemLog),
);
