import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json, Problem } from '../entry/http.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import { bodyText, type SlackEndpoint, signedBy, tenantOfRequest } from './request/signed-request.ts';

const UrlVerification = z.object({ type: z.literal('url_verification'), challenge: z.string().max(1_000) });
const Event = z.object({ team_id: z.string() });

/** Responds to Slack's URL verification. Events are acknowledged and not used. */
export async function handleEvent(slack: SlackEndpoint, event: HttpEvent): Promise<HttpResponse> {
  const body = tryParseJson(bodyText(event));
  const check = UrlVerification.safeParse(body);
  if (!check.success) {
    await tenantOfRequest(slack, event, Event.safeParse(body).data?.team_id);
    return { statusCode: 200, body: '' };
  }
  // The URL verification names no workspace, so the secret of any tenant is accepted; the response contains no tenant data.
  const signers = await signedBy(slack, event, slack.teams.tenants);
  if (signers.length === 0) {
    throw new Problem(401, 'UNAUTHORIZED', 'the signature does not match this workspace, body and time');
  }
  return json(200, { challenge: check.data.challenge });
}
