import { documentPlace, envelopePlace } from '../../../lambdas/evidence/bundle/bundle-object.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { isOpen } from '../../../lambdas/run/approval.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import type { Workflow, WorkflowStep } from '../../../lambdas/workflow/workflow.ts';
import { assertChain } from '../../fakes/assert-chain.ts';
import { GROUP_BY_NAME, NEW_INCIDENT } from '../actors/incident-editors.ts';
import type { Simulation } from '../simulation.ts';
import { TERMINAL } from './lifecycle-table.ts';

/** What must be true when no work is left. */
export function checkFinalState(simulation: Simulation): void {
  const { inside } = simulation.store;
  for (const run of inside.runs()) {
    if (!TERMINAL.has(run.status)) simulation.violate('every run ends', `${run.runId} is ${run.status}`);
    try {
      assertChain(run, inside.commits(run.tenant, run.runId));
    } catch (error) {
      simulation.violate('every chain is complete', String(error));
    }
    checkEvidence(simulation, run);
  }
  for (const entry of inside.outbox()) simulation.violate('every outbox entry is completed', entry.id);
  for (const counter of inside.caps.counters()) {
    if (counter.running !== 0)
      simulation.violate('every slot is returned', `${counter.shard} counts ${counter.running}`);
  }
  if (inside.caps.holders().length > 0)
    simulation.violate('every concurrency key is released', inside.caps.holders().join());
  for (const receipt of inside.receipts()) checkReceipt(simulation, receipt);
  checkFields(simulation);
  simulation.observer.bulk.checkFinished();
  simulation.observer.agents.checkFinal();
  simulation.observer.notices.checkFinal();
  simulation.observer.sessions.checkFinal(simulation.hadFaults);
  simulation.observer.commandSessions.checkFinal(simulation.hadFaults);
  checkApprovals(simulation);
  simulation.observer.digests.checkListed(simulation.observer.approvals.all(), simulation.hadFaults);
}

/** Every approval is closed, every card shows it, and every execution that waited for it has ended. */
function checkApprovals(simulation: Simulation): void {
  for (const { approvalId, status } of simulation.observer.approvals.all()) {
    if (isOpen({ status })) simulation.violate('every approval is closed', approvalId);
  }
  for (const { approvalId, ended } of simulation.machine.executions.values()) {
    if (ended === 'no') simulation.violate('every Step Functions execution ends', approvalId);
  }
  simulation.observer.cards.checkFinal(new Set(simulation.machine.executions.keys()), simulation.hadFaults);
}

/** There is one document, its hash is recorded, and it is about this run only. */
function checkEvidence(simulation: Simulation, run: Run): void {
  const { tenant, runId } = run;
  const record = simulation.store.inside.evidence(tenant, runId);
  const document = record && simulation.evidence.peek(...documentPlace(record));
  if (!record || !document || !simulation.evidence.peek(...envelopePlace(record))) {
    simulation.violate('every ended run is sealed', runId);
    return;
  }
  if (sha256Hex(document) !== record.sha256) {
    simulation.violate('the evidence record has the hash of its document', runId);
    return;
  }
  const bundle = JSON.parse(document.toString()) as Pick<EvidenceDocument, 'head' | 'receipts'>;
  const addenda = simulation.store.inside.addenda(tenant, runId).map(({ seq }) => seq);
  const after = Array.from({ length: run.seq - bundle.head.count }, (_, index) => bundle.head.count + 1 + index);
  if (addenda.join() !== after.join()) simulation.violate('evidence is complete', `${runId}: ${addenda}, not ${after}`);
  for (const receipt of bundle.receipts) {
    if (receipt.runId !== runId && receipt.outcome !== 'succeeded') {
      simulation.violate(
        'evidence contains only receipts of its run, or reused ones',
        `${runId} has the ${receipt.outcome} receipt of ${receipt.runId}`,
      );
    }
  }
}

function checkReceipt(simulation: Simulation, receipt: Receipt): void {
  const { tenant, key, runId, outcome } = receipt;
  const run = simulation.store.inside.run(tenant, runId);
  const isUndone = run?.rolledBackBy !== undefined && outcome === 'reversed';
  if (run?.resolution && (outcome === 'unknown' || outcome === 'intent') && receipt.effect !== 'read') {
    simulation.violate('a resolved run leaves no write unknown', `${key} of ${runId}`);
  }
  if (outcome === 'intent') simulation.violate('every intent gets an outcome', `${key} of ${runId}, ${run?.status}`);
  // An attempt that failed before an edit of the write has left a receipt that no step uses.
  const isUsed = simulation.store.inside.steps(tenant, runId).some((step) => receiptKeyOf(step) === key);
  if (run?.status === 'succeeded' && outcome !== 'succeeded' && !isUndone && (isUsed || outcome !== 'failed')) {
    simulation.violate('a succeeded run made its writes', `${key} of ${runId} is ${outcome}`);
  }
  if (receipt.effect !== 'probe' || outcome !== 'succeeded') return;
  const times = simulation.observer.effects.times(tenant, key);
  if (times === 0) simulation.violate('a succeeded receipt has a write', key);
}

/** The value of the last step remains, unless all writes were undone. */
function checkFields(simulation: Simulation): void {
  for (const run of simulation.store.inside.runs()) {
    const workflow = simulation.published.workflow(run);
    const sysId = sysIdOf(simulation, run);
    const alone =
      [...simulation.store.inside.runs()].filter((other) => sysIdOf(simulation, other) === sysId).length === 1;
    if (!workflow || !alone || sysId === undefined || simulation.incidentEditors.editedIncidents.has(sysId)) continue;
    const fields = simulation.targets.systems.incidents.get(sysId)?.fields ?? {};
    const wanted: Record<string, unknown> = {};
    if (run.status === 'succeeded' && !wasEdited(simulation, run) && run.rolledBackBy === undefined) {
      for (const step of workflow.steps) {
        const always = step.when === undefined;
        if (always && step.tool === 'servicenow.incident.update') Object.assign(wanted, fieldsOfStep(workflow, step));
      }
    }
    if (run.rollback && run.compensation?.every(({ outcome }) => outcome === 'reversed')) {
      Object.assign(wanted, NEW_INCIDENT);
    }
    for (const [field, value] of Object.entries(wanted)) {
      // Each lookup finds another group; that the approved one is written is checked when the request is sent.
      const stays = value === GROUP_BY_NAME ? /^[0-9a-f]{32}$/.test(fields[field] ?? '') : fields[field] === value;
      if (!stays) simulation.violate('the last write to a field remains', `${run.runId} ${field}`);
    }
  }
}

/**
 * In a loop, the item takes the place of its expression. The items are read from the text of the workflow, not from what the
 * engine made of them. A step of a loop without an item writes nothing.
 */
function fieldsOfStep({ steps }: Workflow, { scope, with: input }: WorkflowStep): Record<string, unknown> {
  const fields = input.fields as Record<string, unknown>;
  if (!scope?.item) return fields;
  const { list, position } = scope.item;
  const literal = /^\{% (\[.*\]) %\}$/.exec(String(steps.find(({ id }) => id === list)?.with.items));
  if (!literal?.[1]) throw new Error(`write the items of the loop ${list} as JSON, so that this invariant knows them`);
  const items = JSON.parse(literal[1]) as unknown[];
  if (position >= items.length) return {};
  const values = Object.entries(fields).map(([name, value]) => [
    name,
    value === '{% item %}' ? items[position] : value,
  ]);
  return Object.fromEntries(values);
}

const wasEdited = ({ observer }: Simulation, { runId }: Run) =>
  [...observer.approvals.all()].some((approval) => approval.runId === runId && approval.edits.length > 0);

/** A repeated run is about the incident of its original. */
function sysIdOf(simulation: Simulation, { tenant, trigger, request }: Run): string | undefined {
  const original = simulation.store.inside.run(tenant, request?.rerunOf ?? request?.replay?.of ?? '');
  return original ? sysIdOf(simulation, original) : /:([0-9a-f]{32}):/.exec(trigger.key)?.[1];
}
