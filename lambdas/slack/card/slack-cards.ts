import * as z from 'zod';
import type { Cards } from '../../approval/wait-for-decision.ts';
import { type Connections, openIfDefined } from '../../connectors/connections.ts';
import { type Access, markOf, type Risk } from '../../connectors/connector.ts';
import { sendEvent } from '../../connectors/pagerduty/events.ts';
import { slack } from '../../connectors/slack/client.ts';
import { findMarked, type PostedMessage, postMarked } from '../../connectors/slack/marked-messages.ts';
import { NO_PARSING, NO_PARSING_OR_PREVIEWS } from '../../connectors/slack/message-text.ts';
import { finalRefusal } from '../../connectors/target-errors.ts';
import { LOGGED } from '../../entry/environment.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import type { RunStore } from '../../run/run-store.ts';
import { type Message, type Modal, sentence, shortened } from '../block-kit.ts';
import { approvalCard } from './approval-card.ts';

/** A card is redrawn this often for votes that arrive meanwhile; later votes appear with the next change. */
const REDRAWN_MAX = 3;
const SUMMARY_MAX_CHARACTERS = 1_000;

const Done = z.object({ ok: z.literal(true) });

const SEVERITIES: Record<Risk, 'critical' | 'error' | 'warning'> = {
  low: 'warning',
  medium: 'error',
  high: 'critical',
};

interface CardPorts {
  connections: Connections;
  people: Pick<Definitions, 'people'>;
  runs: Pick<RunStore, 'approval'>;
  clock: Clock;
  log: Log;
  /** Of this stage; undefined if it has no console. */
  consoleUrl?: string | undefined;
}

/** Cards in the tenant's Slack workspace, and alerts through PagerDuty when an approval is overdue. */
export class SlackCards implements Cards {
  readonly #ports: CardPorts;

  constructor(ports: CardPorts) {
    this.#ports = ports;
  }

  async post(approval: Approval, mayBePosted: boolean): Promise<PostedMessage | undefined> {
    const access = await this.#connection(approval, 'slack');
    if (!access) return undefined;
    const { tenant, approvalId, channel, requestedAt } = approval;
    return postOnce(access, {
      mark: markOf(tenant, approvalId),
      channel,
      since: requestedAt,
      mayBePosted,
      message: await this.#drawn(approval),
    });
  }

  async find(approval: Approval): Promise<PostedMessage | undefined> {
    const access = await this.#connection(approval, 'slack');
    const { tenant, approvalId, channel, requestedAt: since } = approval;
    return access && findPosted(access, { mark: markOf(tenant, approvalId), channel, since });
  }

  /**
   * Two functions may update the card at the same time, and the older state may arrive last. So each reads the approval
   * again after drawing, and redraws if it has changed: the last to draw has seen the last change.
   */
  async update(approval: Approval): Promise<void> {
    let shown = approval;
    try {
      for (let redrawn = 0; redrawn < REDRAWN_MAX; redrawn += 1) {
        await this.#draw(shown);
        const { tenant, runId, approvalId } = shown;
        const now = await this.#ports.runs.approval(tenant, runId, approvalId);
        if (!now || now.revision <= shown.revision) break;
        shown = now;
      }
    } finally {
      // Resolve the page even if Slack fails.
      if (!isOpen(shown) && shown.escalatedAt !== undefined) await this.alert(shown);
    }
  }

  /** Posts to the card's thread and also to the channel, because few people read the thread. */
  async remind(approval: Approval, mayBePosted: boolean): Promise<void> {
    const access = await this.#connection(approval, 'slack');
    const { tenant, approvalId, card, requestedAt } = approval;
    if (!access || !card) return;
    await postOnce(access, {
      mark: markOf(tenant, `${approvalId} remind`),
      channel: card.channel,
      threadTs: card.ts,
      since: requestedAt,
      mayBePosted,
      message: sentence(`Still waiting for a decision on ${nameOf(approval)}.`),
    });
  }

  /**
   * One incident for each approval, also where a digest lists several: it is resolved with its decision, and a newly
   * overdue approval pages even if somebody has acknowledged the others. PagerDuty merges events with the same key, so a
   * repeat pages nobody twice.
   */
  async alert(approval: Approval): Promise<void> {
    const { tenant, approvalId, runId, automation, requirement, requestedAt } = approval;
    const access = await this.#connection(approval, 'pagerduty');
    if (!access) return;
    const summary = `Not decided in time: ${nameOf(approval)} for ${automation}, run ${runId}`;
    const call = {
      action: 'trigger',
      summary: shortened(summary, SUMMARY_MAX_CHARACTERS),
      source: 'countersign',
      severity: SEVERITIES[requirement.tier],
    };
    const event = { ...(isOpen(approval) ? call : { action: 'resolve' }), dedupKey: approvalId };
    const mark = markOf(tenant, approvalId);
    await sendEvent.perform(sendEvent.parse(event), { access, mark, openSince: requestedAt });
  }

  /** A tenant without the connection gets no notification there; people decide through the API. */
  #connection({ tenant }: Approval, name: 'slack' | 'pagerduty'): Promise<Access | undefined> {
    return openIfDefined(this.#ports.connections, tenant, name);
  }

  async #drawn(approval: Approval): Promise<Message> {
    const people = await this.#ports.people.people(approval.tenant);
    const { clock, consoleUrl } = this.#ports;
    return approvalCard(approval, people, clock.now(), consoleUrl);
  }

  async #draw(approval: Approval): Promise<void> {
    const access = await this.#connection(approval, 'slack');
    if (!approval.card || !access) return;
    const { channel, ts } = approval.card;
    try {
      const body = { channel, ts, ...(await this.#drawn(approval)), ...NO_PARSING };
      await slack(access, { method: 'POST', api: 'chat.update', body, responseSchema: Done });
    } catch (error) {
      // The card was deleted or the app lost its access. Retries would not help, and nothing depends on the card.
      const { tenant, approvalId } = approval;
      this.#ports.log.error(LOGGED.cardNotUpdated, { tenant, approvalId, error: finalRefusal(error) });
    }
  }
}

/** Shows a modal to the person whose click has this trigger id. */
export async function openView(access: Access, trigger: string, view: Modal): Promise<void> {
  await slack(access, { method: 'POST', api: 'views.open', body: { trigger_id: trigger, view }, responseSchema: Done });
}

const nameOf = ({ action, stepId }: Approval): string => (action ? `${action.tool} at ${action.target}` : stepId);

interface Posting {
  mark: string;
  channel: string;
  threadTs?: string;
  /** An earlier attempt cannot have posted the message before this time. */
  since: string;
  /** An earlier attempt may have posted it. */
  mayBePosted: boolean;
  message: Message;
}

const EVENT_TYPE = 'countersign_approval';

/** The message of an earlier attempt, if Slack shows it. */
async function findPosted(
  access: Access,
  { mark, ...where }: Pick<Posting, 'mark' | 'channel' | 'threadTs' | 'since'>,
): Promise<PostedMessage | undefined> {
  const found = await findMarked(access, { eventType: EVENT_TYPE, mark }, where);
  return found.kind === 'found' ? { channel: found.channel, ts: found.ts } : undefined;
}

/** Posts a message unless an earlier attempt has posted it. If Slack does not show that, a second card is better than none. */
async function postOnce(access: Access, posting: Posting): Promise<PostedMessage> {
  const { mark, channel, threadTs, mayBePosted, message } = posting;
  const earlier = mayBePosted ? await findPosted(access, posting).catch(unlessFinal) : undefined;
  if (earlier) return earlier;
  const thread = threadTs === undefined ? {} : { thread_ts: threadTs, reply_broadcast: true };
  return postMarked(
    access,
    { eventType: EVENT_TYPE, mark },
    { channel, ...thread, ...message, ...NO_PARSING_OR_PREVIEWS },
  );
}

/** Slack never allows this search: the app lacks a scope, or there are too many channels. It may still allow the post. */
function unlessFinal(error: unknown): undefined {
  finalRefusal(error);
}
