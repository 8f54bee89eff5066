import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../entry/http.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import { bodyText, type SlackEndpoint, signedBy, tenantSpeaking } from './request/signed-request.ts';

const UrlVerification = z.object({ type: z.literal('url_verification'), challenge: z.string().max(1_000) });
const Event = z.object({ team_id: z.string() });

/** Slack checks the address with a challenge; the events themselves are acknowledged, none is used yet. */
export async function receiveEvent(slack: SlackEndpoint, event: HttpEvent): Promise<HttpResponse> {
  const body = tryParseJson(bodyText(event));
  const check = UrlVerification.safeParse(body);
  if (!check.success) {
    await tenantSpeaking(slack, event, Event.safeParse(body).data?.team_id);
    return { statusCode: 200, body: '' };
  }
  // The check of an address names no workspace, so any tenant's secret will do: it asks nothing about any of them.
  const signers = await signedBy(slack, event, slack.teams.tenants);
  if (signers.length === 0) {
    throw new Problem(401, 'UNAUTHORIZED', 'the signature does not match this workspace, body and time');
  }
  return json(200, { challenge: check.data.challenge });
}
