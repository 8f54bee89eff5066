import { sha256Hex } from '../canonical-json.ts';
import { CountersignError } from '../errors.ts';
import { OUTBOX_SHARDS, type Rerun } from '../run-store.ts';
import { shardOf } from '../settings/caps.ts';

/** All keys of the run table are defined here. Tenants and run ids never contain `#`. */
export interface Key {
  pk: string;
  sk: string;
}

/** The first part of the partition key. Permissions of functions are limited by it. */
export type RowKind =
  | 'RUN'
  | 'TOKEN'
  | 'RECEIPT'
  | 'IDEM'
  | 'LOG'
  | 'CAPS'
  | 'RATE'
  | 'LOCK'
  | 'OUTBOX'
  | 'OUT'
  | 'DIGEST'
  | 'NOTICE'
  | 'SCHEDULE'
  | 'SWEEP'
  | 'BULK'
  | 'PLAN'
  | 'AGENT'
  | 'TENANT'
  | 'CHANGE'
  | 'APIKEY'
  | 'KEYS'
  | 'ISSUER'
  | 'IDENTITY'
  | 'TICKET'
  | 'CONN'
  | 'LIVE';

/** The limits of DynamoDB for keys, in the table and in its indexes. */
const PARTITION_KEY_MAX_BYTES = 2_048;
const SORT_KEY_MAX_BYTES = 1_024;

/** Throws `KEY_TOO_LONG`, because DynamoDB would refuse each attempt with an unclear error. */
function bounded(what: string, text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  throw new CountersignError(
    'KEY_TOO_LONG',
    `a name, id or target is too long: with it the ${what} would have ${bytes} bytes, at most ${maxBytes} are possible`,
  );
}

const partition = (kind: RowKind, ...parts: string[]) =>
  bounded(`key of ${kind}`, [kind, ...parts].join('#'), PARTITION_KEY_MAX_BYTES);
/** For every key in a request. Partition keys are checked where they are made. */
export function assertSortKeys(...sortKeys: string[]): void {
  for (const sk of sortKeys) bounded('sort key', sk, SORT_KEY_MAX_BYTES);
}
const padded = (value: number, digits: number) => String(value).padStart(digits, '0');

/** Sort before and after all sort keys. */
export const FIRST = '!';
export const LAST = '~';

export const runPartition = (tenant: string, runId: string) => partition('RUN', tenant, runId);

/**
 * Sort keys of the rows of a run, in order. A worker reads from the first commit on. The row of the run comes after commits:
 * so it is not older than what was read of them (dynamo-stored-run.ts).
 */
export const APPROVAL_PREFIX = 'APPROVAL#';
export const COMMIT_PREFIX = 'COMMIT#';
export const EVIDENCE_SORT_KEY = 'EVIDENCE';
export const LEASE_PREFIX = 'LEASE#';
export const RERUN_PREFIX = 'RERUN#';
export const RUN_SORT_KEY = 'RUN';
export const STEP_PREFIX = 'STEP#';
export const TRIGGER_SORT_KEY = 'TRIGGER';

export const runKey = (tenant: string, runId: string): Key => ({ pk: runPartition(tenant, runId), sk: RUN_SORT_KEY });
export const stepKey = (tenant: string, runId: string, index: number): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${STEP_PREFIX}${padded(index, 4)}`,
});
export const leaseKey = (tenant: string, runId: string, index: number): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${LEASE_PREFIX}${padded(index, 4)}`,
});
/** Of the row of a step or of its lease. */
export const indexOfStep = (sk: string): number => Number(sk.split('#')[1]);
export const commitKey = (tenant: string, runId: string, seq: number): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${COMMIT_PREFIX}${padded(seq, 8)}`,
});
export const triggerKey = (tenant: string, runId: string): Key => ({
  pk: runPartition(tenant, runId),
  sk: TRIGGER_SORT_KEY,
});
export const evidenceKey = (tenant: string, runId: string): Key => ({
  pk: runPartition(tenant, runId),
  sk: EVIDENCE_SORT_KEY,
});
/** In the partition of the original: a run that repeats it. The original itself does not change. */
export const rerunKey = (tenant: string, original: string, { createdAt, runId }: Rerun): Key => ({
  pk: runPartition(tenant, original),
  sk: `${RERUN_PREFIX}${createdAt}#${runId}`,
});
export const ADDENDUM_PREFIX = 'EVIDENCE#';
export const addendumKey = (tenant: string, runId: string, seq: number): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${ADDENDUM_PREFIX}${padded(seq, 8)}`,
});
export const isEvidenceKey = ({ sk }: Pick<Key, 'sk'>): boolean =>
  sk === EVIDENCE_SORT_KEY || sk.startsWith(ADDENDUM_PREFIX);
export const approvalKey = (tenant: string, runId: string, approvalId: string): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${APPROVAL_PREFIX}${approvalId}`,
});

/** One row for each claim that was assigned to an agent. */
export const ASSIGNMENT_PREFIX = 'ASSIGNMENT#';
export const assignmentKey = (
  tenant: string,
  { runId, stepIndex, leaseVersion }: { runId: string; stepIndex: number; leaseVersion: number },
): Key => ({
  pk: runPartition(tenant, runId),
  sk: `${ASSIGNMENT_PREFIX}${padded(stepIndex, 4)}#${padded(leaseVersion, 6)}`,
});

export const taskTokenKey = (tenant: string, runId: string, approvalId: string): Key => ({
  pk: partition('TOKEN', tenant, runId),
  sk: approvalId,
});

interface OutputOf {
  runId: string;
  stepIndex: number;
}
type CommandOf = OutputOf & { leaseVersion: number };
/** The output of commands: for each lease of a step its chunks in order, then what is known about all of them. */
export const outputPartition = (tenant: string, runId: string) => partition('OUT', tenant, runId);
const outputOfStep = (stepIndex: number) => `${padded(stepIndex, 4)}#`;
const outputOfCommand = (tenant: string, { runId, stepIndex, leaseVersion }: CommandOf, rest: string): Key => ({
  pk: outputPartition(tenant, runId),
  sk: `${outputOfStep(stepIndex)}${padded(leaseVersion, 6)}#${rest}`,
});
export const outputChunkKey = (tenant: string, command: CommandOf, seq: number): Key =>
  outputOfCommand(tenant, command, padded(seq, 8));
export const outputHeadKey = (tenant: string, command: CommandOf): Key => outputOfCommand(tenant, command, 'HEAD');
export const outputsOfStep = (tenant: string, { runId, stepIndex }: OutputOf) => ({
  pk: outputPartition(tenant, runId),
  from: outputOfStep(stepIndex),
  to: `${outputOfStep(stepIndex)}${LAST}`,
});
export const leaseOfOutput = ({ sk }: Pick<Key, 'sk'>): number => Number(sk.split('#')[1]);

export const receiptKey = (tenant: string, key: string): Key => ({
  pk: partition('RECEIPT', tenant, key),
  sk: 'RECEIPT',
});
export const idempotencyKey = (tenant: string, key: string): Key => ({
  pk: partition('IDEM', tenant, key),
  sk: 'IDEM',
});
/** The agents of a tenant, in a partition of their own: agents change their row, and no definition. */
export const agentPartition = (tenant: string) => partition('AGENT', tenant);
export const AGENT_PREFIX = 'AGENT#';
export const agentKey = (tenant: string, agentId: string): Key => ({
  pk: agentPartition(tenant),
  sk: `${AGENT_PREFIX}${agentId}`,
});
export const ENROLMENT_TOKEN_PREFIX = 'TOKEN#';
export const enrolmentTokenKey = (tenant: string, tokenId: string): Key => ({
  pk: agentPartition(tenant),
  sk: `${ENROLMENT_TOKEN_PREFIX}${tokenId}`,
});
/** A saved plan, until it expires. */
export const planKey = (tenant: string, planHash: string): Key => ({
  pk: partition('PLAN', tenant, planHash),
  sk: 'PLAN',
});
export const apiKeyKey = (keyHash: string): Key => ({ pk: partition('APIKEY', keyHash), sk: 'APIKEY' });
/** The API keys of a tenant, by name. A partition of its own: the authorizer writes here, and to no definition. */
export const keyNamesPartition = (tenant: string) => partition('KEYS', tenant);
export const keyNameKey = (tenant: string, name: string): Key => ({ pk: keyNamesPartition(tenant), sk: name });
/** The tenant whose settings name this issuer and audience. The pair belongs to one tenant of the stage. */
export const issuerClaimKey = (issuerHash: string): Key => ({ pk: partition('ISSUER', issuerHash), sk: 'ISSUER' });

/** Whose identity it is. A partition of its own: the authorizer writes here, and to no definition. */
export const identityKey = (tenant: string, identityHash: string): Key => ({
  pk: partition('IDENTITY', tenant),
  sk: identityHash,
});

/** The live feed: tickets, open connections, and who watches what in a tenant. */
export const ticketKey = (ticketHash: string): Key => ({ pk: partition('TICKET', ticketHash), sk: 'TICKET' });
export const connectionRowKey = (connectionId: string): Key => ({ pk: partition('CONN', connectionId), sk: 'CONN' });
export const livePartition = (tenant: string) => partition('LIVE', tenant);
/** Who watches one run, or the tenant. */
export const watcherKey = (tenant: string, connectionId: string, runId?: string): Key => ({
  pk: livePartition(tenant),
  sk: `${runId === undefined ? 'ALL#' : `RUN#${runId}#`}${connectionId}`,
});
/** All of them, and no socket of an agent, which come before. */
export const watchersOf = (tenant: string) => ({ pk: livePartition(tenant), from: 'ALL#', to: `RUN#${LAST}` });
export const agentSocketKey = (tenant: string, agentId: string): Key => ({
  pk: livePartition(tenant),
  sk: `AGENT#${agentId}`,
});
/** A row for each bundle sealed on a day (UTC), and one with the last closed day. */
export const logPartition = (tenant: string, day: string) => partition('LOG', tenant, day);
export const logEntryKey = (tenant: string, day: string, entryId: string): Key => ({
  pk: logPartition(tenant, day),
  sk: entryId,
});
export const lastClosedLogKey = (tenant: string): Key => ({ pk: partition('LOG', tenant), sk: 'CLOSED' });
/** How far the lists of accepted runs are written. */
export const acceptedStateKey = (tenant: string): Key => ({ pk: partition('LOG', tenant), sk: 'CLOSED#ACCEPTED' });
/** The last day whose changes of definitions are signed. */
export const lastClosedChangesKey = (tenant: string): Key => ({ pk: partition('LOG', tenant), sk: 'CLOSED#CHANGES' });

/** The counter of the tenant or, with a name, of a workflow. */
export const slotCounterKey = (tenant: string, shard: number, workflow?: string): Key => ({
  pk: partition('CAPS', tenant, padded(shard, 2), ...(workflow === undefined ? [] : [workflow])),
  sk: 'SLOTS',
});
export const startCounterKey = (tenant: string, minute: string, workflow?: string): Key => ({
  pk: partition('RATE', tenant, minute, ...(workflow === undefined ? [] : [workflow])),
  sk: 'STARTS',
});
export const concurrencyLockKey = (tenant: string, key: string): Key => ({
  pk: partition('LOCK', tenant, key),
  sk: 'LOCK',
});

/** The id of an entry begins with tenant and run, so its shard can be computed from the id. */
export const outboxKey = (entryId: string): Key => ({
  pk: outboxPartition(shardOf(runOfOutboxEntry(entryId), OUTBOX_SHARDS)),
  sk: entryId,
});
export const outboxPartition = (shard: number): string => partition('OUTBOX', String(shard));
export const outboxPrefix = (tenant: string): string => `${tenant}.`;
export const runOfOutboxEntry = (entryId: string): string => entryId.split('.')[1] ?? '';
export const tenantOfOutboxEntry = (entryId: string): string => entryId.split('.')[0] ?? '';
export const isOutboxKey = ({ pk }: Key): boolean => pk.startsWith(partition('OUTBOX', ''));

export const bulkJobKey = (tenant: string, jobId: string): Key => ({ pk: partition('BULK', tenant), sk: jobId });
/** The digests of overdue approvals in a Slack channel. */
export const digestKey = (tenant: string, channel: string): Key => ({ pk: partition('DIGEST', tenant), sk: channel });
/** What the last sweep found for a tenant. */
export const sweepKey = (tenant: string): Key => ({ pk: partition('SWEEP', tenant), sk: 'LAST' });

/** The definitions of a tenant; also the partition of its runs and approvals in indexes. */
export const tenantPartition = (tenant: string) => partition('TENANT', tenant);
export const AUTOMATION_PREFIX = 'AUTOMATION#';
export const automationKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${AUTOMATION_PREFIX}${name}`,
});
export const workflowPrefix = (name: string) => `WORKFLOW#${name}#`;
export const workflowKey = (tenant: string, name: string, version: number): Key => ({
  pk: tenantPartition(tenant),
  sk: `${workflowPrefix(name)}${padded(version, 6)}`,
});
export const ALL_WORKFLOWS = { from: workflowPrefix(''), to: workflowPrefix(LAST) };
export const versionOfWorkflowKey = ({ sk }: Key): number => Number(sk.split('#').at(-1));
export const SCHEDULE_PREFIX = 'SCHEDULE#';
export const scheduleKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${SCHEDULE_PREFIX}${name}`,
});
/** The state of a schedule, with its next slot in the due index. */
export const scheduleStateKey = (tenant: string, name: string): Key => ({
  pk: partition('SCHEDULE', tenant, name),
  sk: 'STATE',
});
export const SOURCE_PREFIX = 'SOURCE#';
export const sourceKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${SOURCE_PREFIX}${name}`,
});
export const CONFIGURATION_PREFIX = 'CONFIGURATION#';
export const configurationKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${CONFIGURATION_PREFIX}${name}`,
});
/** Messages about a run, each posted once. */
export const noticePartition = (tenant: string, runId: string) => partition('NOTICE', tenant, runId);
export const noticeKey = (tenant: string, runId: string, id: string): Key => ({
  pk: noticePartition(tenant, runId),
  sk: id,
});
/** The lists of a profile: which commands may run. */
export const PROFILE_PREFIX = 'PROFILE#';
export const profileKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${PROFILE_PREFIX}${name}`,
});
export const PERSON_PREFIX = 'PERSON#';
export const personKey = (tenant: string, id: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${PERSON_PREFIX}${id}`,
});
/** Exists if a person with this id was deleted. The id is not given again. */
export const formerPersonKey = (tenant: string, id: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `FORMER#${id}`,
});
/** Changes that wait for a second owner. */
export const PENDING_CHANGE_PREFIX = 'PENDING#';
export const pendingChangeKey = (tenant: string, changeId: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${PENDING_CHANGE_PREFIX}${changeId}`,
});
/** The changes of a tenant's definitions, oldest first. No function may delete them. */
export const changePartition = (tenant: string) => partition('CHANGE', tenant);
export const changeKey = (tenant: string, place: string): Key => ({ pk: changePartition(tenant), sk: place });
export const policiesKey = (tenant: string): Key => ({ pk: tenantPartition(tenant), sk: 'POLICIES' });
export const CONNECTION_PREFIX = 'CONNECTION#';
export const connectionKey = (tenant: string, name: string): Key => ({
  pk: tenantPartition(tenant),
  sk: `${CONNECTION_PREFIX}${name}`,
});
export const settingsKey = (tenant: string): Key => ({ pk: tenantPartition(tenant), sk: 'SETTINGS' });

/**
 * Index keys start with the tenant, except the due index, which only the sweeper reads. CloudFormation adds or deletes at
 * most one index in an update of a stack, so several lists share an index: `RUN_LISTS` says which rows are in which.
 */
export const INDEXES = {
  due: { name: 'due', partition: 'dueShard', sort: 'dueAt' },
  byTenant: { name: 'by-tenant', partition: 'tenantKey', sort: 'createdAt' },
  byStatus: { name: 'by-status', partition: 'statusKey', sort: 'createdAt' },
  pendingApprovals: { name: 'pending-approvals', partition: 'pendingKey', sort: 'createdAt' },
  bySubject: { name: 'by-subject', partition: 'subjectKey', sort: 'createdAt' },
} as const;
export type Index = (typeof INDEXES)[keyof typeof INDEXES];

/** DynamoDB deletes rows some days after this time (epoch seconds). Conditions do not depend on it. */
export const TTL_ATTRIBUTE = 'deleteAfterSeconds';

export const statusIndexKey = (tenant: string, status: string) => partition('TENANT', tenant, status);
/** The index of pending approvals lists closed ones, too, under keys of their own. */
export const closedApprovalsIndexKey = (tenant: string, list: string) => partition('TENANT', tenant, list);

/** A list of runs: one partition of an index. */
export interface RunList {
  index: Index;
  partition: string;
}

/** Longer names are in their list under their hash. */
const LISTED_NAME_MAX_BYTES = 200;
const namedList =
  (index: Index, kind: string) =>
  (tenant: string, name: string): RunList => ({
    index,
    partition: partition(
      'TENANT',
      tenant,
      kind,
      Buffer.byteLength(name) > LISTED_NAME_MAX_BYTES ? sha256Hex(name) : name,
    ),
  });

/**
 * The lists that runs are found in, by the row of the run that adds it. A row is in at most one list of each index. A row
 * that never changes costs one write unit for each of its lists, once.
 */
export const RUN_LISTS = {
  /** RUN */
  all: (tenant: string): RunList => ({ index: INDEXES.byTenant, partition: tenantPartition(tenant) }),
  status: (tenant: string, status: string): RunList => ({
    index: INDEXES.byStatus,
    partition: statusIndexKey(tenant, status),
  }),
  /** RUN, if so. A run that is overdue has not ended, so it is in one of the two lists at most. */
  overdue: (tenant: string): RunList => namedList(INDEXES.pendingApprovals, 'runs')(tenant, 'overdue'),
  needsResolution: (tenant: string): RunList => namedList(INDEXES.pendingApprovals, 'runs')(tenant, 'needs_resolution'),
  assignee: namedList(INDEXES.bySubject, 'assignee'),
  /** TRIGGER, which never changes. */
  automation: namedList(INDEXES.byTenant, 'automation'),
  workflow: namedList(INDEXES.byStatus, 'workflow'),
  subject: namedList(INDEXES.bySubject, 'subject'),
  /** The first commit, sorted by the id of the run. */
  ids: (tenant: string): RunList => namedList(INDEXES.bySubject, 'runs')(tenant, 'ids'),
  /** The commit that ended the run with this error. */
  errorCode: namedList(INDEXES.bySubject, 'error'),
  /** The commit that gave the run its title, sorted by `titleSortKey`. */
  titles: (tenant: string): RunList => namedList(INDEXES.byTenant, 'runs')(tenant, 'titles'),
};

/** Indexes have only keys, so the title follows the time. A list sorted by these keys is sorted by time, too. */
export const titleSortKey = (createdAt: string, title: string) =>
  bounded('sort key', `${createdAt} ${title}`, SORT_KEY_MAX_BYTES);
export const parseTitle = (sortKey: string): string => sortKey.slice(sortKey.indexOf(' ') + 1);
/** Sorts after everything that was created by this time, with any title. */
export const createdUpTo = (until: string) => `${until}${LAST}`;

export const dueIndexKey = (shard: number) => `DUE#${shard}`;

/** The index has only keys, so the number of sweeps since the last commit is appended to the due time. */
const SWEEPS = '~';
export const dueSortKey = (dueAt: string, sweeps: number) => (sweeps === 0 ? dueAt : `${dueAt}${SWEEPS}${sweeps}`);
/** Sorts after everything that is due by this time, with any number of sweeps. */
export const dueSortKeysUpTo = (now: string) => `${now}${SWEEPS}${LAST}`;
export function parseDueSortKey(sortKey: string): { dueAt: string; sweeps: number } {
  const [dueAt = '', sweeps = '0'] = sortKey.split(SWEEPS);
  return { dueAt, sweeps: Number(sweeps) };
}

/** As `parseRunPartition`, for the state of a schedule. */
export function parseSchedulePartition(pk: string): { tenant: string; name: string } | undefined {
  const [, tenant, name] = /^SCHEDULE#([^#]+)#([^#]+)$/.exec(pk) ?? [];
  return tenant && name ? { tenant, name } : undefined;
}

/** Parses tenant and run id from the partition key of a run, for rows of indexes, which have only keys. */
export function parseRunPartition(pk: string): { tenant: string; runId: string } | undefined {
  const [, tenant, runId] = /^RUN#([^#]+)#([^#]+)$/.exec(pk) ?? [];
  return tenant && runId ? { tenant, runId } : undefined;
}
