import { createHmac } from 'node:crypto';
import { fieldsOf, textOf } from '../exchange.ts';
import type { SlackTeam } from './workspace.ts';

/** After three seconds Slack shows a warning. It does not cancel the request. */
const ACKNOWLEDGE_WITHIN_MS = 3_000;
const STOP_WAITING_AFTER_MS = 15_000;

/** The result of an action of a person, as the page shows it. */
export interface Outcome {
  ok: boolean;
  message: string;
  /** The status of the response. Absent if there was no response. */
  status?: number;
  body?: unknown;
  /** Set if `message` is a message of Countersign that only this person can see. */
  isPrivate?: true;
  errors?: Record<string, string>;
}

export interface SlackCallback {
  url: (endpoint: 'interactivity' | 'commands' | 'events') => string;
  /** By team id. */
  signingSecrets: Readonly<Record<string, string>>;
}

/** Signs the form as Slack does, sends it, and returns the result. */
export async function sendCallback(
  nowMs: number,
  callback: SlackCallback,
  team: SlackTeam,
  endpoint: 'interactivity' | 'commands' | 'events',
  /** A form; events are JSON. */
  sent: Record<string, unknown>,
): Promise<Outcome> {
  const url = callback.url(endpoint);
  const isForm = endpoint !== 'events';
  const body = isForm ? new URLSearchParams(sent as Record<string, string>).toString() : JSON.stringify(sent);
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac('sha256', callback.signingSecrets[team.id] ?? '')
    .update(`v0:${timestamp}:${body}`)
    .digest('hex');
  const startedAt = performance.now();
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        'user-agent': 'Slackbot 1.0 (+https://api.slack.com/robots)',
        'x-slack-request-timestamp': timestamp,
        'x-slack-signature': `v0=${signature}`,
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(STOP_WAITING_AFTER_MS),
    });
    return outcomeOf(url, response.status, await response.text(), performance.now() - startedAt);
  } catch (error) {
    const timedOut = error instanceof Error && error.name === 'TimeoutError';
    const reason = timedOut ? `did not respond within ${STOP_WAITING_AFTER_MS / 1000} s` : 'could not be reached';
    return { ok: false, message: `POST ${url} ${reason}.` };
  }
}

function outcomeOf(url: string, status: number, text: string, tookMs: number): Outcome {
  const body = parseJsonOrText(text);
  const said = textOf(fieldsOf(body).detail) || textOf(fieldsOf(body).message) || textOf(fieldsOf(body).title);
  const because = said === '' ? '' : `: ${said}`;
  if (status === 404) return { ok: false, status, body, message: `POST ${url} does not exist (404)${because}.` };
  if (status === 401 || status === 403)
    return { ok: false, status, body, message: `POST ${url} refused the callback (${status})${because}.` };
  if (status !== 200)
    return { ok: false, status, body, message: `POST ${url} responded with ${status}${because}; Slack expects 200.` };
  const late = tookMs > ACKNOWLEDGE_WITHIN_MS;
  const message = late
    ? `Accepted, but after ${(tookMs / 1000).toFixed(1)} s: Slack shows a warning after 3 s.`
    : 'Accepted.';
  return { ok: true, status, body, message };
}

function parseJsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
