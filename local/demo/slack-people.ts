import type { ShownApproval } from '../../bin/client/api-client.ts';
import { ACTIONS } from '../../lambdas/slack/card/approval-card.ts';
import type { PageCards } from '../simulators/page/cards.ts';
import type { DemoHost } from './demo-host.ts';
import { ClaimFailed } from './narrator.ts';

/** People of the simulated workspace. */
export const SLACK = { ana: 'U100ANA', ben: 'U200BEN' } as const;
/** Slack shows this to a maker of a write who tries to approve it. */
export const MAKER_REFUSED = 'you had a hand in this write, so someone else must decide on it';

type User = (typeof SLACK)[keyof typeof SLACK];

interface Workspace {
  channels: { name: string; messages: { ts: string; text: string; ephemeral_for?: string }[] }[];
  views: { id: string; user: string; view: { blocks: { block_id: string; element?: { action_id: string } }[] } }[];
}

/** What people see and do in Slack. Countersign receives every click as a signed request, as from Slack. */
export class SlackPeople {
  readonly #host: DemoHost;

  constructor(host: DemoHost) {
    this.#host = host;
  }

  /** The approval a run waits for, once its card is posted. */
  waiting(runId: string): Promise<ShownApproval> {
    return this.#host.until(`the card for ${runId} is posted`, async () => {
      const { approvals } = await this.#host.run(runId);
      return approvals.find(({ status, card }) => status === 'notified' && card);
    });
  }

  /** A card as the page at /_sim shows it. */
  async cardOnPage({ card }: ShownApproval): Promise<string> {
    const { sections } = await this.#host.ask<PageCards>('GET', '/_sim/state?form=cards');
    const cards = sections.slack.find(({ title }) => title === '#approvals')?.cards ?? [];
    return cards.find(({ key }) => key === card?.ts)?.html ?? '';
  }

  /** Waits until the card shows a text: a card changes shortly after its approval. */
  cardShows(approval: ShownApproval, text: string): Promise<string> {
    return this.#host.until(`the card shows ${text}`, async () => {
      const card = await this.cardOnPage(approval);
      return card.includes(text) ? card : undefined;
    });
  }

  press(user: User, { card }: ShownApproval, button: keyof typeof ACTIONS): Promise<unknown> {
    const action_id = ACTIONS[button];
    return this.#host.ask('POST', '/_sim/slack/_click', { user, channel: card?.channel, ts: card?.ts, action_id });
  }

  /** Fills in the only field of a person's open form, and submits it. */
  async fillIn(user: User, text: string): Promise<unknown> {
    const { views } = await this.#workspace();
    const open = views.find((view) => view.user === user);
    const field = open?.view.blocks.find(({ element }) => element);
    if (!open || !field?.element) throw new ClaimFailed(`a form is open for ${user}`, 'a form', 'none');
    const values = { [field.block_id]: { [field.element.action_id]: text } };
    return this.#host.ask('POST', '/_sim/slack/_submit', { user, view_id: open.id, values });
  }

  /** The last message that only this person can see. */
  async privateMessage(user: User): Promise<string | undefined> {
    const { channels } = await this.#workspace();
    const messages = channels.flatMap((channel) => channel.messages);
    return messages.filter(({ ephemeral_for }) => ephemeral_for === user).at(-1)?.text;
  }

  #workspace(): Promise<Workspace> {
    return this.#host.ask('GET', '/_sim/state');
  }
}
