import { createHmac } from 'node:crypto';
import { fieldsOf, textOf } from '../exchange.ts';
import type { SlackTeam } from './workspace.ts';

/** Slack gives up after three seconds and shows the person a warning; the request itself is not taken back. */
const ACKNOWLEDGE_WITHIN_MS = 3_000;
const STOP_WAITING_AFTER_MS = 15_000;

/** What a person at the page is told about their click. */
export interface Outcome {
  ok: boolean;
  message: string;
  /** Status our endpoint answered; absent when it could not be asked. */
  status?: number;
  body?: unknown;
  /** The message is what the product told this person and nobody else. */
  told?: true;
  errors?: Record<string, string>;
}

export interface SlackCallback {
  url: (endpoint: 'interactivity' | 'commands') => string;
  /** By team id. */
  signingSecrets: Readonly<Record<string, string>>;
}

/** Signs the form as Slack does and tells how the product took it. */
export async function sendCallback(
  nowMs: number,
  callback: SlackCallback,
  team: SlackTeam,
  endpoint: 'interactivity' | 'commands',
  form: Record<string, string>,
): Promise<Outcome> {
  const url = callback.url(endpoint);
  const body = new URLSearchParams(form).toString();
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac('sha256', callback.signingSecrets[team.id] ?? '')
    .update(`v0:${timestamp}:${body}`)
    .digest('hex');
  const startedAt = performance.now();
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
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
    const reason = timedOut ? `did not answer within ${STOP_WAITING_AFTER_MS / 1000} s` : 'could not be reached';
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
    return { ok: false, status, body, message: `POST ${url} answered ${status}${because}; Slack expects 200.` };
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
