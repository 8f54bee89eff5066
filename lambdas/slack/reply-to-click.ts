import * as z from 'zod';
import type { Connections } from '../connectors/connections.ts';
import { exchange } from '../connectors/exchange.ts';
import { OutcomeUnknown } from '../connectors/target-errors.ts';
import type { Log } from '../entry/ports.ts';
import type { Message } from './block-kit.ts';

const SLACK_HOOKS = ['hooks.slack.com', 'hooks.slack-gov.com'];
/** Slack waits three seconds for the response to a click; the reply must not use them up. */
const REPLY_MAX_MS = 1_500;

export interface ReplyPorts {
  connections: Connections;
  log: Log;
  sleep(ms: number): Promise<void>;
}

export const ephemeral = (message: Message) => ({ response_type: 'ephemeral', replace_original: false, ...message });

/** Sends a message that only the person who clicked sees. If it fails, the decision is still stored. */
export async function replyToClick(
  ports: ReplyPorts,
  tenant: string,
  responseUrl: string | undefined,
  message: Message,
): Promise<void> {
  const sending = send(ports, tenant, responseUrl ?? '', message).catch((error: unknown) => {
    // Slack's response may be plain text instead of JSON, which is not a failure.
    if (error instanceof OutcomeUnknown) return;
    ports.log.warn('the reply to a click could not be sent', { tenant, error });
  });
  await Promise.race([sending, ports.sleep(REPLY_MAX_MS)]);
}

async function send({ connections }: ReplyPorts, tenant: string, responseUrl: string, message: Message): Promise<void> {
  const { baseUrl } = await connections.open(tenant, 'slack');
  if (!isSlackUrl(responseUrl, baseUrl)) throw new Error('the response_url is not a URL of Slack; nothing was sent');
  await exchange({
    system: 'Slack',
    method: 'POST',
    url: responseUrl,
    headers: {},
    body: ephemeral(message),
    responseSchema: z.unknown(),
  });
}

/** The URL comes from the payload, so it must be a URL of Slack or of the tenant's Slack connection. */
export function isSlackUrl(url: string, baseUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, host, origin, pathname, username, password } = new URL(url);
  if (username !== '' || password !== '') return false;
  if (protocol === 'https:' && SLACK_HOOKS.includes(host)) return true;
  const base = new URL(baseUrl);
  return origin === base.origin && pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`);
}
