import * as z from 'zod';
import { type Connections, openIfDefined } from '../../connectors/connections.ts';
import { type Access, markOf } from '../../connectors/connector.ts';
import { slack } from '../../connectors/slack/client.ts';
import { findMarked, type Mark, type PostedMessage, postMarked } from '../../connectors/slack/marked-messages.ts';
import { NO_PARSING_OR_PREVIEWS } from '../../connectors/slack/message-text.ts';
import { finalRefusal, TargetRefused } from '../../connectors/target-errors.ts';
import type { Log } from '../../entry/ports.ts';
import type { NoticeOf } from '../../notify/notice-store.ts';
import type { RunEndMessages } from '../../notify/notify-run-end.ts';
import { NoDestination, type Postable } from '../../notify/post-once.ts';
import type { ProgressMessages } from '../../notify/post-progress.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { Run, TerminalRun } from '../../run/run.ts';
import type { NotifiedPlace, SlackThread } from '../../run/run-terms.ts';
import type { Message } from '../block-kit.ts';
import { progressMessage, runEndMessage } from './run-end-message.ts';

const Opened = z.object({ ok: z.literal(true), channel: z.object({ id: z.string() }) });
/** The place does not exist, or the app is not in it. People can change that, but the message is then of no use. */
const NO_SUCH_PLACE =
  /\((?:channel_not_found|not_in_channel|is_archived|user_not_found|thread_not_found|user_disabled)\)/;

interface NoticePorts {
  connections: Connections;
  definitions: Pick<Definitions, 'people'>;
  log: Log;
  /** Where people see runs; undefined in a stage without a console. */
  consoleUrl: string | undefined;
}

interface Place {
  access: Access;
  channel: string;
  threadTs?: string;
}

/** Messages about runs in the tenant's Slack workspace. The bot token is read for each message. */
export class SlackNotices implements RunEndMessages, ProgressMessages {
  readonly #ports: NoticePorts;

  constructor(ports: NoticePorts) {
    this.#ports = ports;
  }

  ofEnd(run: TerminalRun, place: NotifiedPlace, notice: NoticeOf): Postable {
    return this.to(place, notice, () => runEndMessage(run, this.#ports.consoleUrl));
  }

  ofProgress(run: Run, thread: SlackThread, notice: NoticeOf, text: string): Postable {
    return this.to(thread, notice, () => progressMessage(run, text, this.#ports.consoleUrl));
  }

  /** A message to a place, marked with its notice. */
  to(place: NotifiedPlace, notice: NoticeOf, message: () => Message): Postable {
    const mark = markOfNotice(notice);
    return {
      post: async () => {
        const { access, channel, threadTs } = await this.#open(notice.tenant, place);
        const thread = threadTs === undefined ? {} : { thread_ts: threadTs };
        const body = { channel, ...thread, ...message(), ...NO_PARSING_OR_PREVIEWS };
        return postMarked(access, mark, body).catch(missingPlace);
      },
      find: (since) => this.#find(place, notice, mark, since),
    };
  }

  /** If Slack does not show whether the message was posted, a second one is better than none, as with cards. */
  async #find(
    place: NotifiedPlace,
    { tenant, runId }: NoticeOf,
    mark: Mark,
    since: string,
  ): Promise<PostedMessage | undefined> {
    try {
      const { access, channel, threadTs } = await this.#open(tenant, place);
      const found = await findMarked(access, mark, { channel, threadTs, since });
      if (found.kind === 'found') return { channel: found.channel, ts: found.ts };
      if (found.kind === 'undecided') {
        this.#ports.log.warn('a message may be posted twice', { tenant, runId, reason: found.why });
      }
      return undefined;
    } catch (error) {
      if (error instanceof NoDestination) return undefined;
      this.#ports.log.warn('a message may be posted twice', { tenant, runId, reason: finalRefusal(error).message });
      return undefined;
    }
  }

  async #open(tenant: string, place: NotifiedPlace): Promise<Place> {
    const access = await openIfDefined(this.#ports.connections, tenant, 'slack');
    if (!access) throw new NoDestination('the tenant has no Slack');
    if (place.type === 'slack_channel') return { access, channel: place.channel };
    if (place.type === 'slack_thread') return { access, channel: place.channel, threadTs: place.threadTs };
    return { access, channel: await this.#directChannel(tenant, access, place.person) };
  }

  /** Opening a conversation that is open returns it. */
  async #directChannel(tenant: string, access: Access, person: string): Promise<string> {
    const prefix = `slack:${access.instance}/`;
    const people = await this.#ports.definitions.people(tenant);
    const identities = people.find(({ id }) => id === person)?.identities ?? [];
    const user = identities.find((each) => each.startsWith(prefix))?.slice(prefix.length);
    if (user === undefined) throw new NoDestination(`${person} has no identity in this Slack workspace`);
    const call = { method: 'POST' as const, api: 'conversations.open', body: { users: user }, responseSchema: Opened };
    const { channel } = await slack(access, call).catch(missingPlace);
    return channel.id;
  }
}

const markOfNotice = ({ tenant, runId, id }: NoticeOf): Mark => ({
  eventType: 'countersign_notice',
  mark: markOf(tenant, `notice ${id} of ${runId}`),
});

function missingPlace(error: unknown): never {
  if (error instanceof TargetRefused && NO_SUCH_PLACE.test(error.message)) throw new NoDestination(error.message);
  throw error;
}
