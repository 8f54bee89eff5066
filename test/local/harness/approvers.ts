import type { Approval } from '../../../lambdas/run/approval.ts';
import { eventually } from './eventually.ts';
import type { TestHost } from './test-host.ts';

/** People in the simulated workspace. */
export const SLACK = { ana: 'U100ANA', ben: 'U200BEN', chloe: 'U300CHLOE', oscar: 'U600OSCAR' } as const;
type SlackUser = (typeof SLACK)[keyof typeof SLACK];

interface SlackMessage {
  text: string;
  ts: string;
  blocks?: unknown[];
  ephemeral_for?: string;
}

interface OpenModal {
  id: string;
  user: string;
  view: { blocks: { block_id: string; element?: { action_id: string; initial_value?: string } }[] };
}

/** What people see of approvals and do to them on a host. */
export class Approvers {
  readonly #host: TestHost;

  constructor(host: TestHost) {
    this.#host = host;
  }

  /** The approval a run waits for, once its card is posted. */
  async waiting(runId: string): Promise<Approval> {
    const run = await this.#host.waitForRun(runId, ({ steps }) => steps.some(({ approvalId }) => approvalId));
    const approvalId = run.steps.find(({ status }) => status === 'waiting_approval')?.approvalId ?? '';
    return this.#host.eventually(`the card of ${approvalId}`, async () => {
      const approval = await this.approval(approvalId);
      return approval.card ? approval : undefined;
    });
  }

  async approval(approvalId: string): Promise<Approval> {
    const { status, body, text } = await this.#host.api<Approval>(`/approvals/${approvalId}`);
    if (status !== 200) throw new Error(`no approval ${approvalId}: ${text}`);
    return body;
  }

  decide({ approvalId, actionHash }: Approval, decision: object, key: string) {
    return this.#host.command<{ outcome: string; code: string; approval: Approval }>(
      `/approvals/${approvalId}/decision`,
      { ...decision, actionHash },
      key,
    );
  }

  click(user: SlackUser, { card }: Approval, action_id: string) {
    return this.#person('_click', { user, channel: card?.channel, ts: card?.ts, action_id });
  }

  /** Fills in the first field of an open modal, and submits it with the other fields unchanged. */
  fillIn({ id, user, view }: OpenModal, text: string) {
    const typed = view.blocks.flatMap(({ block_id, element }) => (element ? [{ block_id, ...element }] : []));
    const values = Object.fromEntries(
      typed.map(({ block_id, action_id, initial_value }, index) => [
        block_id,
        { [action_id]: index === 0 ? text : (initial_value ?? '') },
      ]),
    );
    return this.#person('_submit', { user, view_id: id, values });
  }

  /** Writes a message, which Slack sends to the app. */
  async write(user: SlackUser, text: string, thread_ts?: string): Promise<{ channel: string; ts: string }> {
    const written = { user, channel: '#general', text, ...(thread_ts && { thread_ts }) };
    const { ok, message, body } = await this.#person<{ channel: string; ts: string }>('_message', written);
    if (!ok || !body) throw new Error(`the message "${text}" was not received: ${message}`);
    return body;
  }

  type(user: SlackUser, typed: string) {
    return this.#person('_command', { user, typed });
  }

  /** The modal that a button opens for a person. Slack opens none later than three seconds after a click: they click again. */
  async modal(user: SlackUser, approval: Approval, action: string): Promise<OpenModal> {
    const open = async () => (await this.#state()).views.find((view) => view.user === user);
    const before = await open();
    return eventually(`a modal for ${user}`, async () => {
      await this.click(user, approval, action);
      const now = await open();
      return now?.id === before?.id ? undefined : now;
    });
  }

  /** All messages of a channel as people see them. */
  async messages(channel = 'approvals'): Promise<SlackMessage[]> {
    const { channels } = await this.#state();
    return channels.find(({ name }) => name === channel)?.messages ?? [];
  }

  async card({ card }: Approval): Promise<string> {
    return JSON.stringify((await this.messages()).find(({ ts }) => ts === card?.ts));
  }

  /** The events that PagerDuty received. */
  async alerts(): Promise<{ dedup_key: string; status: string }[]> {
    return (await this.#state()).alerts;
  }

  #state() {
    return this.#host.ask<{
      channels: { name: string; messages: SlackMessage[] }[];
      views: OpenModal[];
      alerts: { dedup_key: string; status: string }[];
    }>('GET', '/_sim/state');
  }

  #person<Body>(verb: string, body: object): Promise<{ ok: boolean; message: string; body?: Body }> {
    return this.#host.ask('POST', `/_sim/slack/${verb}`, body);
  }
}
