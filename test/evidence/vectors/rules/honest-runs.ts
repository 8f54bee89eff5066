import type { EvidenceDocument } from '../../../../lambdas/evidence/bundle/document.ts';
import { ALLOWED } from '../../../fakes/fake-policy.ts';
import { ASSIGN, GovernedWorkshop, needsApproval } from '../../../worker/governance/governed-workshop.ts';
import { SYS_ID } from '../../../worker/workshop.ts';

async function documentOf(shop: GovernedWorkshop, runId: string): Promise<EvidenceDocument> {
  return JSON.parse(String(shop.evidence.file(runId, 'bundle.json')));
}

async function opened(): Promise<GovernedWorkshop> {
  const shop = await new GovernedWorkshop().open();
  globalThis.fetch = shop.outside.fetch;
  shop.policy.decision = () => needsApproval({ quorum: 2 });
  return shop;
}

/** One write that two people approved. Commits: accepted; asked; voted; voted and approved; begun; written. */
export async function approvedRun(): Promise<EvidenceDocument> {
  const shop = await opened();
  const { message, approval } = await shop.upToGate(ASSIGN());
  await shop.say(approval, 'ana');
  await shop.say(approval, 'ben');
  const { run } = await shop.finish(message);
  return documentOf(shop, run.runId);
}

/** The same, after Olivia edited the write. */
export async function editedRun(): Promise<EvidenceDocument> {
  const shop = await opened();
  const { message, approval } = await shop.upToGate(ASSIGN());
  await shop.say(approval, 'olivia', { kind: 'edit', fields: { category: 'database' } });
  const edited = await shop.openApproval(message);
  await shop.say(edited, 'ana');
  await shop.say(edited, 'ben');
  const { run } = await shop.finish(message);
  return documentOf(shop, run.runId);
}

const ROLLED_BACK = `
name: failing
onFailure: rollback
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "in progress" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`;

/** Three writes, of which one cannot be undone, a write that fails, and the rollback. */
export async function rolledBackRun(): Promise<EvidenceDocument> {
  const shop = await opened();
  shop.policy.decision = () => ALLOWED;
  const { run } = await shop.finish(await shop.begin(ROLLED_BACK));
  return documentOf(shop, run.runId);
}

const PHASED = `
name: phased
validation: { mode: per_phase }
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
`;

/** One approval for both writes of a phase. */
export async function phasedRun(): Promise<EvidenceDocument> {
  const shop = await opened();
  const { message, approval } = await shop.upToGate(PHASED);
  await shop.say(approval, 'ana');
  await shop.say(approval, 'ben');
  const { run } = await shop.finish(message);
  return documentOf(shop, run.runId);
}
