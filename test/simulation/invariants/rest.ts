import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { isOpen } from '../../../lambdas/run/approval.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { assertChain } from '../../../lambdas/run/commit.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import { GROUP_BY_NAME, NEW_INCIDENT } from '../third-parties.ts';
import type { World } from '../world.ts';
import { TERMINAL } from './lifecycle-table.ts';

/** What must be true when nothing is left to do. */
export function judgeRest(world: World): void {
  const { inside } = world.store;
  for (const run of inside.runs()) {
    if (!TERMINAL.has(run.status)) world.violate('every run comes to an end', `${run.runId} is ${run.status}`);
    try {
      assertChain(run, inside.commits(run.tenant, run.runId));
    } catch (error) {
      world.violate('every chain is whole', String(error));
    }
    judgeEvidence(world, run);
  }
  for (const entry of inside.outbox()) world.violate('every outbox entry is completed', entry.id);
  for (const counter of inside.caps.counters()) {
    if (counter.running !== 0) world.violate('every place is given back', `${counter.shard} counts ${counter.running}`);
  }
  if (inside.caps.holders().length > 0) world.violate('every key is let go of', inside.caps.holders().join());
  for (const receipt of inside.receipts()) judgeReceipt(world, receipt);
  judgeFields(world);
  judgeApprovals(world);
}

/** Everybody who was asked, and everything that waited for them, was let go. */
function judgeApprovals(world: World): void {
  for (const { approvalId, status } of world.witness.approvals.all()) {
    if (isOpen({ status })) world.violate('every approval is closed', approvalId);
  }
  for (const { approvalId, ended } of world.machine.executions.values()) {
    if (ended === 'no') world.violate('every execution ends', approvalId);
  }
}

/** Sealed exactly once: one document, the one that was recorded, and of this run only. */
function judgeEvidence(world: World, run: Run): void {
  const { tenant, runId } = run;
  const record = world.store.inside.evidence(tenant, runId);
  const document = world.evidence.peek(`evidence/${tenant}/${runId}/bundle.json`);
  if (!record || !document || !world.evidence.peek(record.envelopeKey)) {
    world.violate('every ended run is sealed', runId);
    return;
  }
  if (sha256Hex(document) !== record.sha256) world.violate('the record names the document that is there', runId);
  const bundle = JSON.parse(document.toString()) as Pick<EvidenceDocument, 'head' | 'receipts'>;
  const addenda = world.store.inside.addenda(tenant, runId).map(({ seq }) => seq);
  const after = Array.from({ length: run.seq - bundle.head.count }, (_, index) => bundle.head.count + 1 + index);
  if (addenda.join() !== after.join()) world.violate('evidence is complete', `${runId}: ${addenda}, not ${after}`);
  for (const receipt of bundle.receipts) {
    if (receipt.runId !== runId && receipt.outcome !== 'succeeded') {
      world.violate(
        'evidence speaks of its own run',
        `${runId} has the ${receipt.outcome} receipt of ${receipt.runId}`,
      );
    }
  }
}

function judgeReceipt(world: World, receipt: Receipt): void {
  const { tenant, key, runId, outcome } = receipt;
  const run = world.store.inside.run(tenant, runId);
  const isUndone = run?.rolledBackBy !== undefined && outcome === 'reversed';
  if (run?.resolution && (outcome === 'unknown' || outcome === 'intent') && receipt.effect !== 'read') {
    world.violate('a resolved run leaves no write unknown', `${key} of ${runId}`);
  }
  if (outcome === 'intent') world.violate('every intent gets an outcome', `${key} of ${runId}, ${run?.status}`);
  // An attempt that failed before an edit of the write has left a receipt that no step uses.
  const isUsed = world.store.inside.steps(tenant, runId).some((step) => receiptKeyOf(step) === key);
  if (run?.status === 'succeeded' && outcome !== 'succeeded' && !isUndone && (isUsed || outcome !== 'failed')) {
    world.violate('a run that succeeded made its writes', `${key} of ${runId} is ${outcome}`);
  }
  if (receipt.effect !== 'probe' || outcome !== 'succeeded') return;
  const times = world.witness.effects.times(tenant, key);
  if (times === 0) world.violate('a successful receipt has an effect', key);
}

/** Later writes to a field come after earlier ones: the last step's value remains, unless all were undone. */
function judgeFields(world: World): void {
  for (const run of world.store.inside.runs()) {
    const workflow = world.published.workflow(run);
    const sysId = sysIdOf(world, run);
    const alone = [...world.store.inside.runs()].filter((other) => sysIdOf(world, other) === sysId).length === 1;
    if (!workflow || !alone || sysId === undefined || world.thirdParties.touched.has(sysId)) continue;
    const fields = world.outside.systems.incidents.get(sysId)?.fields ?? {};
    const wanted: Record<string, unknown> = {};
    if (run.status === 'succeeded' && !wasEdited(world, run) && run.rolledBackBy === undefined) {
      for (const step of workflow.steps) {
        const always = step.when === undefined;
        if (always && step.tool === 'servicenow.incident.update') Object.assign(wanted, step.with.fields);
      }
    }
    if (run.rollback && run.compensation?.every(({ outcome }) => outcome === 'reversed')) {
      Object.assign(wanted, NEW_INCIDENT);
    }
    for (const [field, value] of Object.entries(wanted)) {
      // What a name leads to changes; that it is the approved record is judged when the request is sent.
      const stays = value === GROUP_BY_NAME ? /^[0-9a-f]{32}$/.test(fields[field] ?? '') : fields[field] === value;
      if (!stays) world.violate('the last write to a field stays', `${run.runId} ${field}`);
    }
  }
}

const wasEdited = ({ witness }: World, { runId }: Run) =>
  [...witness.approvals.all()].some((approval) => approval.runId === runId && approval.edits.length > 0);

/** A repeated run is about the incident of its original. */
function sysIdOf(world: World, { tenant, trigger, request }: Run): string | undefined {
  const original = world.store.inside.run(tenant, request?.rerunOf ?? request?.replay?.of ?? '');
  return original ? sysIdOf(world, original) : /:([0-9a-f]{32}):/.exec(trigger.key)?.[1];
}
