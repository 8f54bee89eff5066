import * as z from 'zod';
import type { Digest, DigestMessages } from '../../approval/digest/post-digest.ts';
import { type Connections, openIfDefined } from '../../connectors/connections.ts';
import { type Access, markOf } from '../../connectors/connector.ts';
import { slack } from '../../connectors/slack/client.ts';
import {
  findMarked,
  type Mark,
  type PostedMessage,
  permalinkOf,
  postMarked,
} from '../../connectors/slack/marked-messages.ts';
import { NO_PARSING, NO_PARSING_OR_PREVIEWS } from '../../connectors/slack/message-text.ts';
import { finalRefusal, TargetRefused } from '../../connectors/target-errors.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { Approval } from '../../run/approval.ts';
import { closedDigest } from './closed-digest.ts';
import { overdueDigest, SHOWN_MAX } from './digest-message.ts';

const Done = z.object({ ok: z.literal(true) });

interface DigestPorts {
  connections: Connections;
  people: Pick<Definitions, 'people'>;
  clock: Clock;
  log: Log;
}

/** Digests of overdue approvals in the tenant's Slack workspace. */
export class SlackDigests implements DigestMessages {
  readonly #ports: DigestPorts;

  constructor(ports: DigestPorts) {
    this.#ports = ports;
  }

  async reaches(tenant: string): Promise<boolean> {
    return (await openIfDefined(this.#ports.connections, tenant, 'slack')) !== undefined;
  }

  async post(digest: Digest): Promise<PostedMessage> {
    const { connections, people, clock } = this.#ports;
    const { tenant, channel } = digest;
    const access = await connections.open(tenant, 'slack');
    const known = await people.people(tenant);
    const links = await linksOf(access, digest);
    const message = overdueDigest({ ...digest, people: known, links, nowMs: clock.now() });
    return postMarked(access, markOfDigest(digest), { channel, ...message, ...NO_PARSING_OR_PREVIEWS });
  }

  /** If Slack does not show whether the digest was posted, a second one is better than none, as with cards. */
  async find(digest: Parameters<DigestMessages['find']>[0]): Promise<PostedMessage | undefined> {
    const { connections, log } = this.#ports;
    const { tenant, channel, since } = digest;
    const access = await connections.open(tenant, 'slack');
    const found = await findMarked(access, markOfDigest(digest), { channel, since }).catch(undecidedIfForGood);
    if (found.kind === 'found') return { channel: found.channel, ts: found.ts };
    if (found.kind === 'undecided') log.warn('a digest may be posted twice', { tenant, channel, reason: found.why });
    return undefined;
  }

  async close(tenant: string, { channel, ts }: PostedMessage, approvals: readonly Approval[]): Promise<void> {
    const { connections, people, log } = this.#ports;
    const access = await openIfDefined(connections, tenant, 'slack');
    if (!access) return;
    const body = { channel, ts, ...closedDigest(approvals, await people.people(tenant)), ...NO_PARSING };
    try {
      await slack(access, { method: 'POST', api: 'chat.update', body, responseSchema: Done });
    } catch (error) {
      // The message was deleted or the app lost its access. Retries would not help, and nothing depends on the message.
      log.warn('a digest could not be updated', { tenant, channel, error: finalRefusal(error) });
    }
  }
}

const markOfDigest = ({ tenant, channel, number }: Pick<Digest, 'tenant' | 'channel' | 'number'>): Mark => ({
  eventType: 'countersign_digest',
  mark: markOf(tenant, `digest ${number} of ${channel}`),
});

/** The addresses of the cards that fit into the digest. A card that is gone has none; the digest then has the command only. */
async function linksOf(access: Access, { approvals }: Digest): Promise<Map<string, string>> {
  const shown = approvals.slice(0, SHOWN_MAX).flatMap(({ approvalId, card }) => (card ? [{ approvalId, card }] : []));
  // All are awaited before an error is thrown: nothing may continue after the function has returned.
  const reads = await Promise.allSettled(shown.map(({ card }) => permalinkOf(access, card)));
  const links = new Map<string, string>();
  for (const [index, read] of reads.entries()) {
    if (read.status === 'fulfilled') links.set(shown[index]?.approvalId ?? '', read.value);
    else if (!(read.reason instanceof TargetRefused)) throw read.reason;
  }
  return links;
}

const undecidedIfForGood = (error: unknown): { kind: 'undecided'; why: string } => ({
  kind: 'undecided',
  why: finalRefusal(error).message,
});
