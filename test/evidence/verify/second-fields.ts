import { at, type Fields, type Json } from './second-verifier.ts';

/** The fields of each entry, as docs/evidence-format.md names them under "The document"; `?` may be absent. */
const FIELDS = {
  document: 'format run trigger steps decisions approvals receipts cost awsRequestsAtLeast versions index commits head',
  run:
    'tenant runId automation workspace workflow trigger request? requester? flags? subject? status error? createdAt startedAt? completedAt ' +
    'durationMs deadlineAt writes resumeCount? concurrencyKey? rollbackOf? rollback? compensation?',
  workflow: 'name version',
  'run.trigger': 'source event key',
  request: 'actor rerunOf? replay? planHash? slot? validationMode? profile? action?',
  proposed: 'tool inputHash of?',
  proposedBy: 'runId step',
  replayed: 'of from root?',
  requester: 'person? identityHash?',
  rollbackOf: 'runId bundleHash steps',
  rollback: 'endsAs actor at error?',
  compensation: 'step receiptKey outcome reason?',
  trigger: 'source event receivedAt payload',
  step:
    'id index tool status skipped? attempt leaseVersion updatedAt completedAt? undoes? action? approvalId? receiptKey? ' +
    'assigned? input? output? error?',
  assigned: 'agent assignment profile statementHash',
  action: 'tool instance target effect risk blastRadius environment destructive reversible undo derived? fields',
  derived: 'field how from',
  decision:
    'commit step index tool target verdict policyHash policies reasons message? actionHash derived? ' +
    'action? fields? inputDigest? tier? quorum? groups?',
  'decision.action': 'connector instance effect risk blastRadius environment destructive reversible undo',
  approval:
    'approvalId step index status asks requestedAt slaAt expiresAt remindedAt? escalatedAt? decidedAt? action? message? ' +
    'before? after? phase? actionHash grounds requirement makers votes edits',
  phase: 'name leadHash writes askedLater',
  'phase.write': 'step index action before? after? actionHash',
  'phase.later': 'step tool',
  'approval.grounds': 'policyHash policies reasons',
  requirement: 'tier quorum groups operators?',
  vote: 'person via decision reason? onBehalfOf? rights? at',
  rights: 'role tier groups',
  edit: 'person via at changes previousHash',
  change: 'field from to',
  receipt:
    'key runId step index tool effect target fields requestHash attempt leaseVersion intentAt openSince grounds? outcome ' +
    'settledAt? recovered? incomplete? output? before? reversal? response? command? cost? error? reversedAt? reversedBy?',
  'receipt.grounds': 'policyHash policies approvalId?',
  command:
    'agentId assignmentId statementHash profile environment status exitCode signal durationMs output credentialsUsed violations',
  'command.output': 'sha256 bytes droppedBytes',
  credential: 'id source auditId ttlSeconds revoked',
  reversal: 'tool? input? expects? irreversible?',
  cost: 'provider model calls inputTokens outputTokens usd?',
  'receipt.cost': 'provider model calls? inputTokens outputTokens usd?',
  versions: 'runtime workflow policies',
  head: 'hash count',
  commit: 'seq prevHash at events hash',
  digest: 'sha256 bytes',
  described: 'sha256 bytes shape',
  failure: 'code message',
};
type Kind = keyof typeof FIELDS;

/** The fields of nested objects, and of lists of objects, by name. */
const INNER: Partial<Record<Kind, Record<string, Kind>>> = {
  document: {
    ...{ run: 'run', trigger: 'trigger', steps: 'step', decisions: 'decision', approvals: 'approval' },
    ...{ receipts: 'receipt', cost: 'cost', versions: 'versions', commits: 'commit', head: 'head' },
  },
  run: {
    request: 'request',
    requester: 'requester',
    ...{ workflow: 'workflow', trigger: 'run.trigger', error: 'failure', concurrencyKey: 'digest' },
    ...{ rollbackOf: 'rollbackOf', rollback: 'rollback', compensation: 'compensation' },
  },
  request: { replay: 'replayed', action: 'proposed' },
  proposed: { of: 'proposedBy' },
  rollback: { error: 'failure' },
  compensation: { reason: 'digest' },
  trigger: { payload: 'described' },
  phase: { writes: 'phase.write', askedLater: 'phase.later' },
  'phase.write': { action: 'action', before: 'digest', after: 'digest' },
  step: { assigned: 'assigned', action: 'action', input: 'described', output: 'described', error: 'failure' },
  decision: { message: 'digest', action: 'decision.action' },
  approval: {
    ...{ action: 'action', message: 'digest', before: 'digest', after: 'digest', grounds: 'approval.grounds' },
    phase: 'phase',
    ...{ requirement: 'requirement', votes: 'vote', edits: 'edit' },
  },
  vote: { reason: 'digest', rights: 'rights' },
  edit: { changes: 'change' },
  change: { from: 'digest', to: 'digest' },
  receipt: {
    ...{ grounds: 'receipt.grounds', output: 'described', before: 'digest', reversal: 'reversal' },
    ...{ cost: 'receipt.cost', error: 'failure', incomplete: 'digest', command: 'command' },
  },
  command: { output: 'command.output', credentialsUsed: 'credential' },
  reversal: { input: 'digest', expects: 'digest' },
  versions: { workflow: 'workflow' },
  failure: { message: 'digest' },
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** "The document has exactly the fields above", each time with its milliseconds. */
export function hasExactFields(document: Json): boolean {
  const requests = Object.keys(at(document, 'awsRequestsAtLeast') as Fields);
  const known = ['dynamodb.TransactWriteItems', 'states.StartExecution', 'bedrock.Converse'];
  return isOf('document', document) && requests.every((name) => known.includes(name));
}

function isOf(kind: Kind, value: Json): boolean {
  if (value === null || typeof value !== 'object') return false;
  const allowed = FIELDS[kind].split(' ');
  const names = Object.keys(value);
  const isWhole =
    names.every((name) => allowed.includes(name) || allowed.includes(`${name}?`)) &&
    allowed.every((name) => name.endsWith('?') || names.includes(name));
  return isWhole && names.every((name) => isFieldOf(kind, name, at(value, name)));
}

function isFieldOf(kind: Kind, name: string, value: Json): boolean {
  if (name === 'at' || name.endsWith('At') || name === 'openSince') return TIME.test(String(value));
  const inner = INNER[kind]?.[name];
  if (inner === undefined) return true;
  return Array.isArray(value) ? value.every((each) => isOf(inner, each)) : isOf(inner, value);
}
