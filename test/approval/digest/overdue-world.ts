import { type Digester, postDigest } from '../../../lambdas/approval/digest/post-digest.ts';
import { newOutboxEntry, type OutboxEntry } from '../../../lambdas/outbox/outbox.ts';
import { type Approval, runIdOf } from '../../../lambdas/run/approval.ts';
import { later } from '../../../lambdas/run/lease.ts';
import type { TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import { SlackDigests } from '../../../lambdas/slack/digest/slack-digests.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryConnections } from '../../fakes/memory/memory-connections.ts';
import { MemoryDigests } from '../../fakes/memory/memory-digests.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { MemoryRows } from '../../fakes/memory/memory-rows.ts';
import type { SlackMessage } from '../../fakes/targets/fake-slack.ts';
import { FakeTargets } from '../../fakes/targets/fake-targets.ts';
import { approvalOf, PEOPLE } from '../../slack/approvals.ts';

export const MINUTE_MS = 60_000;

/** Overdue approvals, their outbox entries and the real digests in a fake Slack, without runs. */
export class OverdueWorld {
  readonly clock = new FakeClock();
  readonly targets = new FakeTargets(this.clock);
  readonly outbox = new MemoryRows<OutboxEntry>();
  readonly digests = new MemoryDigests(this.outbox, (name, run) => this.passage(name, run));
  readonly log = new MemoryLog();
  readonly approvals = new Map<string, Approval>();
  settings: Partial<TenantSettings> = {};
  hasSlack = true;
  /** Everything that crosses to the store, so that a test can let it fail. */
  passage: <T>(name: string, run: () => Promise<T>) => Promise<T> = (_name, run) => run();

  constructor() {
    this.targets.channels.set('#approvals', []);
    this.targets.channels.set('#payments', []);
  }

  get #digester(): Digester {
    const { clock, log, digests } = this;
    const connections = new MemoryConnections(this.hasSlack ? { acme: { slack: this.targets.access().slack } } : {});
    return {
      runs: {
        approval: async (_tenant, _runId, approvalId) => this.approvals.get(approvalId),
        approvals: async (_tenant, ids) => [...new Set(ids)].flatMap((id) => this.approvals.get(id) ?? []),
        openOutbox: async () => ({ entries: this.outbox.all(), complete: true }),
        completeOutboxEntry: (id) => this.passage('complete', async () => this.outbox.set(id, '', undefined)),
      },
      digests,
      messages: new SlackDigests({ connections, people: { people: async () => [...PEOPLE] }, clock, log }),
      definitions: { settings: async () => ({ caps: {}, workspaces: {}, counterShards: 1, ...this.settings }) },
      clock,
      ids: new CountingIds(),
      log,
      timeLeftMs: () => 30_000,
    };
  }

  /** An approval passes its SLA now. */
  overdue(name: string, differing: Partial<Approval> = {}): Approval {
    const now = new Date(this.clock.now()).toISOString();
    const approvalId = `run_${name}.2-0`;
    const runId = runIdOf(approvalId);
    const expiresAt = later(now, 24 * 60 * MINUTE_MS);
    const facts = { approvalId, runId, title: `about ${name}`, card: undefined, makers: [] };
    const approval = approvalOf({ ...facts, slaAt: now, escalatedAt: now, expiresAt, ...differing });
    this.approvals.set(approvalId, approval);
    const entry = newOutboxEntry({ kind: 'list_overdue', tenant: 'acme', runId, approvalId }, now);
    this.outbox.set(entry.id, '', entry);
    return approval;
  }

  close(approval: Approval, status: Approval['status'] = 'approved'): void {
    this.approvals.set(approval.approvalId, { ...approval, status });
  }

  /** Sends the message of every outbox entry that is due, as the sweeper does. */
  async sweep(): Promise<void> {
    const now = new Date(this.clock.now()).toISOString();
    await Promise.all(
      this.outbox
        .all()
        .filter(({ dueAt }) => dueAt <= now)
        .map((entry) => this.send(entry)),
    );
  }

  async later(minutes: number): Promise<void> {
    this.clock.advance(minutes * MINUTE_MS);
    await this.sweep();
  }

  send({ id: entryId, kind, tenant, runId, ...rest }: OutboxEntry): Promise<void> {
    if (kind !== 'list_overdue' && kind !== 'repeat_digest') throw new Error(`${kind} is no request for a digest`);
    const { approvalId } = rest as { approvalId: string };
    return postDigest(this.#digester, { kind, entryId, tenant, runId, approvalId });
  }

  messages(channel = '#approvals'): SlackMessage[] {
    return this.targets.channels.get(channel) ?? [];
  }

  /** The headings of the messages. */
  shown(channel?: string): string[] {
    return this.messages(channel).map(({ blocks }) => (blocks as { text: { text: string } }[])[0]?.text.text ?? '');
  }

  waiting(): string[] {
    return this.outbox.all().map(({ id }) => id.split('.').slice(1, 3).join(' '));
  }
}
