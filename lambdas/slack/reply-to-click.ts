import * as z from 'zod';
import type { Connections } from '../connectors/connections.ts';
import { exchange } from '../connectors/exchange.ts';
import { OutcomeUnknown } from '../connectors/target-errors.ts';
import type { Log } from '../entry/ports.ts';
import type { Message } from './block-kit.ts';

const SLACK_HOOKS = ['hooks.slack.com', 'hooks.slack-gov.com'];
/** Slack waits three seconds for our answer. What it is told on the way must not use them up. */
const TOLD_WITHIN_MS = 1_500;

export interface Responder {
  connections: Connections;
  log: Log;
  sleep(ms: number): Promise<void>;
}

export const ephemeral = (message: Message) => ({ response_type: 'ephemeral', replace_original: false, ...message });

/** Tells the person who clicked, and only them. What was decided stands whether or not they hear of it. */
export async function respond(
  responder: Responder,
  tenant: string,
  responseUrl: string | undefined,
  message: Message,
): Promise<void> {
  const telling = tell(responder, tenant, responseUrl ?? '', message).catch((error: unknown) => {
    // Slack answers some of these with a word that is no JSON: that is no failure.
    if (error instanceof OutcomeUnknown) return;
    responder.log.warn('a person could not be told what became of their click', { tenant, error });
  });
  await Promise.race([telling, responder.sleep(TOLD_WITHIN_MS)]);
}

async function tell({ connections }: Responder, tenant: string, responseUrl: string, message: Message): Promise<void> {
  const { baseUrl } = await connections.open(tenant, 'slack');
  if (!isOfSlack(responseUrl, baseUrl)) throw new Error('the response_url is not one of Slack’s; nothing was sent');
  await exchange({
    system: 'Slack',
    method: 'POST',
    url: responseUrl,
    headers: {},
    body: ephemeral(message),
    responseSchema: z.unknown(),
  });
}

/** A payload names the URL, so it is only believed where it leads to Slack, or to what the tenant has connected as Slack. */
export function isOfSlack(url: string, baseUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, host, origin, pathname, username, password } = new URL(url);
  if (username !== '' || password !== '') return false;
  if (protocol === 'https:' && SLACK_HOOKS.includes(host)) return true;
  const base = new URL(baseUrl);
  return origin === base.origin && pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`);
}
