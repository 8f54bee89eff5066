import { beforeEach, describe, expect, it } from 'vitest';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { checkReplay } from '../../../lambdas/evidence/verify/check-replay.ts';
import { AgentWorkshop, RESTART, SHA, type TestAgent } from '../../worker/agent/agent-workshop.ts';
import { matchesCommits } from '../verify/second-replay.ts';
import { isGenuine, type Json } from '../verify/second-verifier.ts';

const INPUT = `command: ${RESTART}, args: [restart, web], environment: dev, credentials: [db]`;
const workflow = (more = '') => `
name: restart
steps:
  - { id: restart, tool: agent.command, with: { ${INPUT}${more} } }
`;

let shop: AgentWorkshop;
let one: TestAgent;
beforeEach(async () => {
  shop = new AgentWorkshop();
  [one] = (await shop.openWithAgents('one')) as [TestAgent];
});

const used = { id: 'db', source: 'vault', audit_id: 'req-7', ttl_seconds: 300, revoked: true, fetch_ms: 5 } as const;

/** The bundle of a run with a command, as it is stored. */
function bundleOf(runId: string): { document: string; envelope: string } {
  const stored = (name: string) => String(shop.evidence.file(runId, name));
  return { document: stored('bundle.json'), envelope: stored('bundle.dsse.json') };
}

const PUBLIC_KEY = () => String(shop.signer.publicKey.export({ type: 'spki', format: 'pem' }));

describe('both verifiers accept the bundle of a command', () => {
  it.each(['succeeded', 'failed', 'timed_out', 'canceled'] as const)('that ended as %s', async (status) => {
    const message = await shop.start(workflow(', rollback: { command: /opt/undo, args: [web] }'));
    const exit_code = status === 'succeeded' ? 0 : 3;
    await one.complete(await one.take(), { status, exit_code, credentials_used: [used] });
    await shop.deliver();
    if (status !== 'succeeded') await one.complete(await one.take());
    await shop.finish(message);
    const { document, envelope } = bundleOf(message.runId);
    expect(checkReplay(JSON.parse(document))).toBeUndefined();
    expect(isGenuine(document, envelope, PUBLIC_KEY())).toBe(true);
  });

  it('whose agent was lost', async () => {
    const message = await shop.start(workflow());
    await one.take();
    await shop.finish(message);
    const { document, envelope } = bundleOf(message.runId);
    expect(JSON.parse(document).steps).toMatchObject([{ assigned: { agent: 'agt_one' } }]);
    expect(JSON.parse(document).receipts[0]).not.toHaveProperty('command');
    expect(isGenuine(document, envelope, PUBLIC_KEY())).toBe(true);
  });
});

const OTHER_HASH = '0'.repeat(64);
type Entry = Record<string, unknown> | undefined;
const assigned = ({ steps }: EvidenceDocument) => steps[0]?.assigned as Entry;
const command = ({ receipts }: EvidenceDocument) => receipts[0]?.command as Entry;

describe('both verifiers notice, in a bundle of a command, another', () => {
  it.each<[string, (document: EvidenceDocument) => unknown]>([
    ['agent', (document) => Object.assign(assigned(document) ?? {}, { agent: 'agt_two' })],
    ['assignment', (document) => Object.assign(assigned(document) ?? {}, { assignment: 'run_x.0.1' })],
    ['profile', (document) => Object.assign(assigned(document) ?? {}, { profile: 'prod-critical' })],
    ['statement', (document) => Object.assign(assigned(document) ?? {}, { statementHash: OTHER_HASH })],
    ['step without an agent', (document) => Object.assign(document.steps[0] ?? {}, { assigned: undefined })],
    ['receipt without a command', (document) => Object.assign(document.receipts[0] ?? {}, { command: undefined })],
    ['agent of the command', (document) => Object.assign(command(document) ?? {}, { agentId: 'agt_two' })],
    ['status', (document) => Object.assign(command(document) ?? {}, { status: 'failed' })],
    ['exit code', (document) => Object.assign(command(document) ?? {}, { exitCode: 1 })],
    ['duration', (document) => Object.assign(command(document) ?? {}, { durationMs: 1 })],
    ['output', (document) => Object.assign((command(document)?.output as Entry) ?? {}, { sha256: OTHER_HASH })],
    ['list of credentials', (document) => Object.assign(command(document) ?? {}, { credentialsUsed: [] })],
    ['list of violations', (document) => Object.assign(command(document) ?? {}, { violations: ['seccomp'] })],
  ])('%s', async (_what, change) => {
    const message = await shop.start(workflow());
    await one.complete(await one.take(), { credentials_used: [used] });
    await shop.finish(message);
    const { document } = bundleOf(message.runId);
    expect(document).toContain(SHA);
    expect(matchesCommits(JSON.parse(document))).toBe(true);
    const read: EvidenceDocument = JSON.parse(document);
    change(read);
    const changed = JSON.parse(JSON.stringify(read));
    expect(checkReplay(changed)).toBeDefined();
    expect(matchesCommits(changed as Json)).toBe(false);
  });
});
