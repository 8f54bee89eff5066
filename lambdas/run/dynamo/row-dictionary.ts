import { deflateRawSync, inflateRawSync } from 'node:zlib';

/**
 * Texts that most rows contain: names of fields, statuses, types of events. Compressed rows refer to this text, so a row of
 * two kilobytes takes about 600 bytes, most of them hashes. Stored rows need exactly this text: never change it. To improve it,
 * add a second one under the next number, and keep this one for the rows that were written with it.
 */
const FIRST_DICTIONARY = [
  '{"runId":"run_","tenant":"acme","workspace":"default","automation":"","workflow":{"name":"","version":1,"hash":""},"trigger":{"source":"servicenow","event":"incident.updated","idempotencyKey":"',
  '"idempotencyKey":"","runIds":["run_"],"expiresAt":"2026-","bodyHash":"","subject":"github:","createdAt":"2026-","updatedAt":"2026-","headHash":"","deadlineAt":"2026-","enrichment":{"title":"","actor":"","url":"https://github.com/",',
  '"approvalId":"approval_","actionHash":"","requirement":{"tier":"medium","quorum":1,"groups":[]},"votes":[{"person":"","decision":"approve","at":"2026-"}],"makers":["",""],"requestedAt":"2026-","remindAt":"2026-","slaAt":"2026-","revision":1,"card":{"channel":"C","ts":"',
  '"before":{"labels":[""]},"reversal":{"tool":"github.labels.remove","input":{"owner":"","repo":"","number":,"labels":[""]},"expects":{"labels":[""]}},"response":{"status":200,"bytes":,"hash":""},"cost":{},"decision":{"verdict":"allow","policies":["',
  '"status":"intent","status":"unknown","status":"failed","status":"waiting","status":"waiting_approval","status":"queued","status":"running","status":"succeeded","lease":{"owner":"lease_","expiresAt":"2026-"},"leaseVersion":1,"attempts":1,"startedAt":"2026-","finishedAt":"2026-","output":{',
  '"policyRequest":{"action":"execute","resource":{"tool":"","target":"","risk":"low","blastRadius":"low","environment":"prod"},"context":{"now":"2026-',
  '{"type":"run.accepted","automation":"","type":"approval.requested","approvalId":"approval_","type":"approval.decided","type":"step.failed","error":{"code":"","message":"","retryable":false},"type":"write.failed","type":"write.unknown","type":"step.waiting","until":"2026-","type":"run.reused","by":{"initiator":"human","actor":"',
  '{"type":"run.status_changed","from":"queued","to":"enriching","initiator":"webhook","actor":"github","externalEvent":{"type":"issues.opened","source":"github","id":"github:"}},{"type":"run.enriched","enrichmentHash":"","requester":{"identityHash":""},"salted":true},{"type":"run.status_changed","from":"ready","to":"running","initiator":"worker","actor":"worker","from":"running","to":"succeeded"',
  '{"seq":,"prevHash":"","at":"2026-","events":[{"type":"write.succeeded","step":"","receiptKey":"","recovered":false,"responseHash":"","reversible":true},{"type":"step.succeeded","step":"","index":,"outputHash":"","durationMs":},{"type":"policy.decided","step":"","index":,"tool":"github.labels.add","target":"github:',
  '","verdict":"allow","policyHash":"","policies":["low-risk-writes"],"reasons":["a low-risk write needs no approval"],"actionHash":"","action":{"connector":"github","instance":"","effect":"natural","risk":"low","blastRadius":"low","environment":"dev","destructive":false,"reversible":true,"undo":false},"fields":{"":""},"inputDigest":"',
  '"},{"type":"step.claimed","step":"","index":,"tool":"servicenow.incident.update","owner":"lease_","leaseVersion":1,"leaseExpiresAt":"2026-","attempt":1,"inputHash":""},{"type":"write.intended","step":"","receiptKey":"","tool":"slack.message.post","target":"","requestHash":""}],"hash":"',
].join('');

/**
 * For the rows of commits with their steps. Versions without it do not know that steps are in these rows, and stop when they
 * read one. What is closer to the end takes fewer bits.
 */
const SECOND_DICTIONARY = [
  FIRST_DICTIONARY,
  '"stepsInRows":[],"assigned":{"agentId":"agt_","agentName":"","assignmentId":"","profile":"","statementHash":"","bootId":"","at":"2026-"},"session":{"completionId":"","seenAt":"2026-","actions":[]},"awaits":{"kind":"signal","event":"","until":"2026-"},"retryAt":"2026-","error":{"code":"TARGET_REFUSED","message":"","retryable":true},"undoes":0,"skipped":true,"expects":{',
  '{"type":"approval.requested","approvalId":"","step":"","index":0,"requirement":{"tier":"medium","quorum":1,"groups":[],"gates":["policy"]},"makers":["github:"],"actionHash":"","expiresAt":"2026-"},{"type":"approval.decided","approvalId":"","decision":"approve","person":"","status":"approved"},{"type":"run.deadline_extended","deadlineAt":"2026-","waitedMs":',
  '{"type":"run.status_changed","from":"running","to":"waiting_approval","initiator":"worker","actor":"worker"},"status":"waiting_approval","approvalId":"","expiresAt":"2026-","status":"ready","by":{"initiator":"human","actor":"',
  '{"type":"run.status_changed","from":"running","to":"succeeded","initiator":"worker","actor":"worker"}],"hash":"","steps":[{"schemaVersion":1,"index":0,"id":"',
  '"events":[{"type":"write.settled","step":"","receiptKey":"gh:labels:add:acme:","outcome":"succeeded"},{"type":"step.succeeded","step":"","index":1,"outputHash":"',
  '"},{"type":"policy.decided","step":"","index":1,"tool":"github.labels.add","target":"github:","verdict":"allow","policyHash":"","policies":["low-risk-writes"],"reasons":["a low-risk write needs no approval"],"actionHash":"',
  '","action":{"connector":"github","instance":"acme","effect":"natural","risk":"low","blastRadius":"low","environment":"dev","destructive":false,"reversible":true,"undo":false},"fields":{"labels":"',
  '"},"inputDigest":""},{"type":"step.claimed","step":"","index":1,"tool":"github.labels.add","owner":"lease_","leaseVersion":1,"leaseExpiresAt":"2026-',
  '","attempt":1,"inputHash":""},{"type":"write.intended","step":"","receiptKey":"","tool":"","target":"","requestHash":""}],"hash":"","steps":[',
  '{"schemaVersion":1,"index":1,"id":"","tool":"servicenow.incident.update","leaseVersion":1,"attempt":1,"startedAt":"2026-","updatedAt":"2026-","governed":{"request":{"tenant":"acme","automation":"","workspace":"default","workflow":{"name":"","version":1},"source":"github","writesBefore":1,"at":"2026-',
  '","trigger":{"event":"issues.opened","labels":["bug"]},"action":{"tool":"","connector":"servicenow","instance":"","target":"","fields":{"":[""]},"effect":"natural","risk":"low","blastRadius":"low","environment":"dev","destructive":false,"reversible":true,"undo":false,"makers":["github:","github:"]}},',
  '"decision":{"verdict":"allow","policyHash":"","policies":["low-risk-writes"],"reasons":["a low-risk write needs no approval"]}},"status":"succeeded","completedAt":"2026-","durationMs":1,"output":{"":[""]},"receiptKey":"',
  '"},{"schemaVersion":1,"index":2,"id":"","tool":"","status":"running","input":{"owner":"","repo":"","number":1,"labels":[""]},"receiptKey":"","lease":{"owner":"lease_","expiresAt":"2026-"}}],"run":{"writes":1,"currentStep":"","dueAt":"2026-',
].join('');

const DICTIONARIES = [FIRST_DICTIONARY, SECOND_DICTIONARY].map((text) => Buffer.from(text));
const NEWEST = 1;
/** No brotli stream begins with this byte (RFC 7932, 9.1), so docOf can distinguish the two formats. The number of the dictionary follows. */
const MARK = 0x11;

/** Enough for a dictionary and a small document. The defaults are for longer texts, and take half as long again. */
const SMALL_WINDOW = { windowBits: 14, memLevel: 6 };
/** For the result. The default of 16 KB would be memory outside of the heap, which the garbage collector frees late. */
const PACKED_CHUNK = { chunkSize: 2 * 1024 };
const TEXT_CHUNK = { chunkSize: 4 * 1024 };

export function packWithDictionary(text: string): Buffer {
  const packed = deflateRawSync(text, { dictionary: DICTIONARIES[NEWEST], ...SMALL_WINDOW, ...PACKED_CHUNK });
  return Buffer.concat([Buffer.from([MARK, NEWEST]), packed]);
}

export const isPackedWithDictionary = (bytes: Uint8Array): boolean => bytes[0] === MARK;

export function unpackWithDictionary(bytes: Uint8Array): string {
  const dictionary = DICTIONARIES[bytes[1] ?? -1];
  if (!dictionary) throw new Error(`a later version stored this row, with dictionary ${bytes[1]}; deploy that version`);
  return inflateRawSync(bytes.subarray(2), { dictionary, ...TEXT_CHUNK }).toString();
}
