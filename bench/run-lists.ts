import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoOutputStore } from '../lambdas/agents/dynamo-output-store.ts';
import { handleRuns } from '../lambdas/api/runs/runs.ts';
import type { HttpEvent } from '../lambdas/entry/http.ts';
import { systemClock, systemPause } from '../lambdas/entry/system.ts';
import { hashOf } from '../lambdas/run/canonical-json.ts';
import { type Commit, sealCommit } from '../lambdas/run/commit.ts';
import { commitRow, type Item, itemBytes, runItem, triggerItems } from '../lambdas/run/dynamo/dynamo-items.ts';
import { DynamoRunStore } from '../lambdas/run/dynamo/dynamo-run-store.ts';
import type { ErrorCode } from '../lambdas/run/errors.ts';
import type { CommitEvent } from '../lambdas/run/events/events.ts';
import { later } from '../lambdas/run/lease.ts';
import type { Run, RunStatus, Trigger } from '../lambdas/run/run.ts';
import { newRun } from '../lambdas/run-changes/new-run.ts';
import { REGION } from '../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../local/aws/aws-endpoint.ts';
import { startDynamoDb } from '../local/dynamodb/dynamodb.ts';
import { ItemStore } from '../local/dynamodb/item-store.ts';
import { type TableShape, tableDefinition } from '../local/dynamodb/table-definitions.ts';
import { createTables, tablesOf } from '../local/dynamodb/tables.ts';
import type { Assembly } from '../local/template/synthesize.ts';
import { type ResolvedStack, resolveTemplate } from '../local/template/template.ts';
import { DynamoDbUnits, type Request, type Response } from './bill/dynamodb-units.ts';

const TENANT = 'acme';
const PAGE = 50;
const FIRST_AT = '2026-01-01T00:00:00.000Z';
const EVERY_MS = 60_000;
const RUNS_PER_TRANSACTION = 5_000;
/** Of every so many runs one is special, so that each filter finds at least 50 of 100,000. */
const RARE_EVERY = 1_500;

export interface ListFigure {
  requests: number;
  rows: number;
  readUnits: number;
  ms: number;
  /** Set if the first page is not full: the requests until 50 runs are found. */
  requestsUntilFull?: number;
}

/** Lists of 50 out of many runs, with each single filter: the route's own code on the embedded DynamoDB. */
export async function runLists(assembly: Assembly, dataFolder: string, count: number) {
  const stack = resolveTemplate(assembly.template, assembly);
  const table = tablesOf(stack)[0];
  if (!table) throw new Error('the template has no table');
  const beganMs = performance.now();
  const store = new ItemStore(dataFolder);
  store.create(tableDefinition(table.ref, table.properties as unknown as TableShape));
  store.close();
  loadRuns(stack, dataFolder, count);
  const loadSeconds = Math.round((performance.now() - beganMs) / 1000);
  const engine = await startDynamoDb(dataFolder, {});
  const client = new DynamoDBClient({ endpoint: engine.url, region: REGION, credentials: HOST_CREDENTIALS });
  try {
    // Fails if the table differs from the template.
    await createTables(engine.url, stack);
    return { runs: count, loadSeconds, lists: await new Lists(client, table.ref, count).measure() };
  } finally {
    client.destroy();
    await engine.stop();
  }
}

/** Writes runs to the file of the local DynamoDB, which takes a third of the time of requests. */
export function loadRuns(stack: ResolvedStack, dataFolder: string, count: number): void {
  const store = new ItemStore(dataFolder);
  const name = String(tablesOf(stack)[0]?.ref);
  const table = store.table(name);
  if (!table) throw new Error(`${dataFolder} has no table ${name}`);
  for (let from = 0; from < count; from += RUNS_PER_TRANSACTION) {
    const indexes = Array.from({ length: Math.min(RUNS_PER_TRANSACTION, count - from) }, (_, each) => from + each);
    store.transaction(() => {
      for (const item of indexes.flatMap(rowsOf)) table.put(asJson(item), itemBytes(item));
    });
  }
  store.close();
}

/** In JSON, binary values are base64. */
const asJson = (item: Item) =>
  Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      value.B ? { B: Buffer.from(value.B).toString('base64') } : { ...value },
    ]),
  );

const runIdOf = (index: number) => `run_${hashOf(index).slice(0, 32)}`;
const createdAtOf = (index: number) => later(FIRST_AT, index * EVERY_MS);

/** The rows of a run that are in a list. */
function rowsOf(index: number): Item[] {
  const at = createdAtOf(index);
  const rare = index % RARE_EVERY === 0;
  const title = `${rare ? 'Certificate expires' : 'Disk almost full'} on host-${index % 5_000}.example.com`;
  const name = `automation-${index % 20}`;
  const workflow = { name: `workflow-${index % 10}`, version: 1 };
  const subject = `servicenow:acme:INC${rare ? 1 : 1_000_000 + index}`;
  const trigger: Trigger = {
    source: 'servicenow',
    event: 'incident.create',
    fields: { title },
    payload: { index },
    receivedAt: at,
  };
  const { run: queued, commit: first } = newRun({
    runId: runIdOf(index),
    tenant: TENANT,
    automation: { name, workspace: 'default', workflow },
    key: `servicenow:${index}`,
    subject,
    trigger,
    payloadHash: hashOf(index),
  });
  const started = { ...queued, enrichment: { title, links: [] }, seq: 2 };
  const run = asItIsNow(started, index);
  const enriched: CommitEvent = { type: 'run.enriched', enrichmentHash: hashOf(title) };
  const second = follows(first, [enriched, changed('queued', 'running')]);
  const last = follows(second, [changed('running', run.status)]);
  return [
    runItem({ ...run, seq: last.seq, headHash: last.hash }),
    ...triggerItems([{ run }], trigger),
    commitRow(started, first, first),
    commitRow(started, second, second),
    ...(run.status === 'succeeded' ? [] : [commitRow(run, last, last)]),
  ];
}

const BY = { initiator: 'system', actor: 'bench' } as const;
const changed = (from: RunStatus, to: RunStatus): CommitEvent => ({ type: 'run.status_changed', from, to, ...BY });
const follows = ({ seq, hash, at }: Commit, events: CommitEvent[]): Commit =>
  sealCommit({ seq: seq + 1, prevHash: hash, at, events });

/** Most runs have succeeded. Some of the others: failed, of unknown outcome, waiting and overdue, assigned. */
function asItIsNow(started: Run & { dueAt?: string }, index: number): Run {
  const { dueAt: _dueAt, ...facts } = started;
  const at = started.createdAt;
  const ended = { ...facts, completedAt: at, durationMs: 0 };
  const failed = (status: RunStatus, code: ErrorCode) =>
    ({ ...ended, status, error: { code, message: 'refused' } }) as unknown as Run;
  switch (index % RARE_EVERY) {
    case 1:
      return failed('failed_terminal', 'TARGET_REFUSED');
    case 2:
      return failed('needs_human', 'OUTCOME_UNKNOWN');
    case 3:
      return { ...facts, status: 'waiting_approval', approvalOverdueSince: at } as unknown as Run;
    case 4:
      return { ...failed('failed_terminal', 'POLICY_DENIED'), assignee: 'oscar' } as unknown as Run;
    default:
      return { ...ended, status: 'succeeded' } as unknown as Run;
  }
}

class Lists {
  readonly #ports: Parameters<typeof handleRuns>[0];
  readonly #runs: DynamoRunStore;
  readonly #count: number;
  readonly #units = new DynamoDbUnits([]);
  #requests = 0;

  constructor(client: DynamoDBClient, table: string, count: number) {
    this.#count = count;
    client.middlewareStack.add(
      (next, { commandName }) =>
        async (args) => {
          const result = await next(args);
          this.#requests += 1;
          this.#units.observe(
            (commandName ?? '').replace(/Command$/, ''),
            args.input as Request,
            result.output as Response,
          );
          return result;
        },
      { step: 'initialize' },
    );
    this.#runs = new DynamoRunStore(client, table, systemPause, systemClock);
    this.#ports = {
      runs: this.#runs,
      definitions: { workflow: async () => undefined },
      cursorSecret: async () => 'bench',
      output: new DynamoOutputStore(client, table, systemClock),
      archive: { read: async () => undefined },
      clock: systemClock,
    };
  }

  async measure(): Promise<Record<string, ListFigure>> {
    const figures: Record<string, ListFigure> = {};
    for (const [name, query] of Object.entries(singleFilters(this.#count))) {
      this.#reset();
      figures[name] = await this.#list(query);
    }
    this.#reset();
    const prefix = runIdOf(this.#count - 1).slice(0, 12);
    figures['id prefix'] = await this.#timed(() => this.#runs.runIdsStartingWith(TENANT, prefix, 6));
    return figures;
  }

  #reset(): void {
    this.#units.reset();
    this.#requests = 0;
  }

  async #list(query: Record<string, string>): Promise<ListFigure> {
    let cursor: string | null = null;
    const readPage = async (limit: number): Promise<unknown[]> => {
      const page = await this.#get({ ...query, limit: String(limit), ...(cursor !== null && { cursor }) });
      cursor = page.nextCursor;
      return page.runs;
    };
    const first = await this.#timed(() => readPage(PAGE));
    if (first.rows === PAGE || cursor === null) return first;
    for (let rows = first.rows; rows < PAGE && cursor !== null; ) rows += (await readPage(PAGE - rows)).length;
    return { ...first, requestsUntilFull: this.#requests };
  }

  async #timed(read: () => Promise<unknown[]>): Promise<ListFigure> {
    const beganMs = performance.now();
    const rows = await read();
    const readUnits = this.#units.report().reads;
    return { requests: this.#requests, readUnits, rows: rows.length, ms: Math.round(performance.now() - beganMs) };
  }

  async #get(query: Record<string, string>): Promise<{ runs: unknown[]; nextCursor: string | null }> {
    const event = {
      routeKey: 'GET /api/v1/runs',
      rawPath: '/api/v1/runs',
      headers: {},
      pathParameters: {},
      queryStringParameters: query,
      requestContext: { authorizer: { lambda: { tenant: TENANT, person: 'olivia', role: 'owner' } } },
    } as unknown as HttpEvent;
    return JSON.parse((await handleRuns(this.#ports, event)).body ?? '');
  }
}

const singleFilters = (count: number): Record<string, Record<string, string>> => ({
  none: {},
  'status, few runs': { status: 'failed_terminal' },
  'status, most runs': { status: 'succeeded' },
  automation: { automation: 'automation-7' },
  workflow: { workflow: 'workflow-7' },
  subject: { subject: 'INC1' },
  assignee: { assignee: 'oscar' },
  errorCode: { errorCode: 'TARGET_REFUSED' },
  overdue: { overdue: 'true' },
  needsResolution: { needsResolution: 'true' },
  since: { since: createdAtOf(count - 200) },
  until: { until: createdAtOf(Math.floor(count / 2)) },
  'text, most titles': { text: 'disk almost' },
  'text, 2 % of the titles': { text: 'host-12' },
  'text, 0.07 % of the titles': { text: 'certificate' },
});
