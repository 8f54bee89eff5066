import { describe, expect, it } from 'vitest';
import * as keys from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { sourceFiles } from '../style/source.ts';

/** Keys that do not start with a tenant; see ARCHITECTURE, "Table". */
const OF_NO_TENANT = [
  'apiKeyKey',
  'outboxKey',
  'isOutboxKey',
  'dueIndexKey',
  // Sort keys of the due index, which only the sweeper reads.
  'dueSortKey',
  'dueSortKeysUpTo',
  // Sort keys of lists of runs, whose partitions start with the tenant.
  'titleSortKey',
  'createdUpTo',
  'workflowPrefix',
  // Prefixes of sort keys within the partitions of the outbox.
  'outboxPrefix',
];
const READ_BACK = [
  'assertSortKeys',
  'versionOfWorkflowKey',
  'parseRunPartition',
  'parseSchedulePartition',
  'tenantOfOutboxEntry',
  'runOfOutboxEntry',
  'parseDueSortKey',
  'parseTitle',
  'isEvidenceKey',
  'leaseOfOutput',
  'indexOfStep',
];

const made = Object.entries(keys).flatMap(([name, key]) =>
  typeof key === 'function' && ![...OF_NO_TENANT, ...READ_BACK].includes(name)
    ? [[name, (key as (...parts: string[]) => string | keys.Key)('acme', 'one', 'two')] as const]
    : [],
);

describe('every key of the table and its indexes', () => {
  it('is known here', () => expect(made.length).toBeGreaterThan(20));

  it.each(made)('%s starts with its kind and its tenant', (_name, key) => {
    const partition = typeof key === 'string' ? key : key.pk;
    expect(partition).toMatch(/^[A-Z]+#acme(#|$)/);
  });
});

it('the functions read the table only by key', () => {
  const reads = /\b(ScanCommand|paginateScan|ExecuteStatementCommand|BatchExecuteStatementCommand)\b/;
  const files = sourceFiles('lambdas/**/*.ts');
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter(({ text }) => reads.test(text)).map(({ path }) => path)).toEqual([]);
});
