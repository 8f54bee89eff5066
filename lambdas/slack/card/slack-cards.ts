import * as z from 'zod';
import type { EscalationStage } from '../../approval/environment.ts';
import type { Cards } from '../../approval/wait-for-decision.ts';
import type { Connections } from '../../connectors/connections.ts';
import { type Access, markOf, type Risk } from '../../connectors/connector.ts';
import { TargetRefused } from '../../connectors/exchange.ts';
import { sendEvent } from '../../connectors/pagerduty/events.ts';
import { findChannel, messagesIn, slack } from '../../connectors/slack/client.ts';
import { AS_WRITTEN, POSTED_AS_WRITTEN } from '../../connectors/slack/message-text.ts';
import { LOGGED } from '../../entry/environment.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import { CountersignError } from '../../run/errors.ts';
import type { RunStore } from '../../run/run-store.ts';
import { type Message, type Modal, sentence, shortened } from '../block-kit.ts';
import { approvalCard } from './approval-card.ts';

const MARK_EVENT_TYPE = 'countersign_approval';
/** Slack's clock and ours may differ; looking a little further back costs nothing. */
const CLOCK_SKEW_SECONDS = 60;
/** Votes that come in while the card is being written are shown at once, and beyond that with the next change. */
const REDRAWN_MAX = 3;
const SUMMARY_MAX_CHARACTERS = 1_000;

const Posted = z.object({ ok: z.literal(true), channel: z.string(), ts: z.string() });
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
}

/** People are told in the tenant's Slack workspace, and by PagerDuty when time runs out, if it has a connection for it. */
export class SlackCards implements Cards {
  readonly #ports: CardPorts;

  constructor(ports: CardPorts) {
    this.#ports = ports;
  }

  async post(approval: Approval, mayHaveTold: boolean): Promise<{ channel: string; ts: string } | undefined> {
    const access = await this.#connection(approval, 'slack');
    if (!access) return undefined;
    const { tenant, approvalId, channel, requestedAt } = approval;
    const place = { channel, since: requestedAt };
    return postOnce(access, {
      mark: markOf(tenant, approvalId),
      place,
      mayBeThere: mayHaveTold,
      message: await this.#drawn(approval),
    });
  }

  /**
   * Two changes may be shown at the same time, and the older last. So whoever has drawn the card looks again, and draws
   * it anew if it has changed meanwhile: the last one to draw has seen the last change.
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
      // Whoever was called is called off, though the card may have to wait for Slack.
      if (!isOpen(shown) && shown.escalatedAt !== undefined) await this.alert(shown);
    }
  }

  remind(approval: Approval, mayHaveTold: boolean): Promise<void> {
    return this.#say(approval, 'remind', `Still waiting for a decision on ${nameOf(approval)}.`, mayHaveTold);
  }

  escalate(approval: Approval, mayHaveTold: boolean): Promise<void> {
    const text = `Not decided in time: ${nameOf(approval)}. If you can decide, please do.`;
    return this.#say(approval, 'escalate', text, mayHaveTold);
  }

  /** PagerDuty merges what has the same key, so a repeat pages nobody twice. */
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

  /** A tenant without one is told nothing there, which is no failure: people decide through the API. */
  #connection({ tenant }: Approval, name: 'slack' | 'pagerduty'): Promise<Access | undefined> {
    return this.#ports.connections.open(tenant, name).catch((error: unknown) => {
      if (error instanceof CountersignError && error.code === 'CONNECTION_MISSING') return undefined;
      throw error;
    });
  }

  async #drawn(approval: Approval): Promise<Message> {
    const people = await this.#ports.people.people(approval.tenant);
    return approvalCard(approval, people, this.#ports.clock.now());
  }

  async #draw(approval: Approval): Promise<void> {
    const access = await this.#connection(approval, 'slack');
    if (!approval.card || !access) return;
    const { channel, ts } = approval.card;
    try {
      const body = { channel, ts, ...(await this.#drawn(approval)), ...AS_WRITTEN };
      await slack(access, { method: 'POST', api: 'chat.update', body, answer: Done });
    } catch (error) {
      if (!(error instanceof TargetRefused) || error.retryable) throw error;
      // Somebody deleted the card or took our access: trying for ever would not bring it back, and nothing depends on it.
      const { tenant, approvalId } = approval;
      this.#ports.log.error(LOGGED.cardNotUpdated, { tenant, approvalId, error });
    }
  }

  /** In the card's thread, and in the channel too: a reminder that only the thread shows would remind nobody. */
  async #say(approval: Approval, escalationStage: EscalationStage, text: string, mayHaveTold: boolean): Promise<void> {
    const access = await this.#connection(approval, 'slack');
    const { tenant, approvalId, card, requestedAt } = approval;
    if (!access || !card) return;
    await postOnce(access, {
      mark: markOf(tenant, `${approvalId} ${escalationStage}`),
      place: { channel: card.channel, threadTs: card.ts, since: requestedAt },
      mayBeThere: mayHaveTold,
      message: sentence(text),
    });
  }
}

/** Shows a modal to the person whose click this trigger came from. */
export async function openView(access: Access, trigger: string, view: Modal): Promise<void> {
  await slack(access, { method: 'POST', api: 'views.open', body: { trigger_id: trigger, view }, answer: Done });
}

const nameOf = ({ action, stepId }: Approval): string => (action ? `${action.tool} at ${action.target}` : stepId);

/** Where a message is posted, and from when on it may be there. */
interface Place {
  channel: string;
  threadTs?: string;
  since: string;
}

/** A message carries a mark: one whose answer was lost is found by it and not posted again. */
async function postOnce(
  access: Access,
  posting: { mark: string; place: Place; mayBeThere: boolean; message: Message },
): Promise<{ channel: string; ts: string }> {
  const { mark, place, mayBeThere, message } = posting;
  const earlier = mayBeThere ? await findMarked(access, place, mark) : undefined;
  if (earlier) return earlier;
  const { channel, threadTs } = place;
  const thread = threadTs === undefined ? {} : { thread_ts: threadTs, reply_broadcast: true };
  const metadata = { event_type: MARK_EVENT_TYPE, event_payload: { mark } };
  const body = { channel, ...thread, ...message, ...POSTED_AS_WRITTEN, metadata };
  const posted = await slack(access, { method: 'POST', api: 'chat.postMessage', body, answer: Posted });
  return { channel: posted.channel, ts: posted.ts };
}

async function findMarked(
  access: Access,
  { channel, threadTs, since }: Place,
  mark: string,
): Promise<{ channel: string; ts: string } | undefined> {
  // Messages of a channel that the app is not in cannot be read. A second card does less harm than none.
  const channelId = await findChannel(access, channel);
  if (channelId === undefined) return undefined;
  const oldest = Math.floor(Date.parse(since) / 1000) - CLOCK_SKEW_SECONDS;
  const query = `include_all_metadata=true&oldest=${oldest}`;
  for await (const { ts, metadata } of messagesIn(access, { channelId, threadTs, query })) {
    if (metadata?.event_payload?.mark === mark) return { channel: channelId, ts };
  }
  return undefined;
}
