import type { NodeFunction } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { WorkQueue } from '../work-queue.ts';

/** Lets a function start runs that no webhook starts: definitions, idempotency record, run, step message. */
export function allowStarts(to: NodeFunction, { runTable, stepQueue }: { runTable: RunTable; stepQueue: WorkQueue }) {
  runTable.allow(to, ['GetItem', 'Query'], ['TENANT']);
  runTable.allow(to, ['GetItem'], ['IDEM']);
  runTable.allow(to, ['PutItem'], ['IDEM', 'RUN']);
  stepQueue.allowSend(to);
}
