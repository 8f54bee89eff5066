import { type HttpEvent, type HttpResponse, json } from '../entry/http.ts';
import type { RunStore } from '../run/run-store.ts';
import { sentence } from './block-kit.ts';
import { pendingMessage } from './card/pending-list.ts';
import { ephemeral } from './reply-to-click.ts';
import { commandIn } from './request/payloads.ts';
import { bodyText, type SlackEndpoint, tenantSpeaking } from './request/signed-request.ts';
import { type KnownPeople, notKnown, personSpeaking } from './request/slack-user.ts';

const HELP = 'Type "/countersign pending" to see what waits for an approval, and who is needed for it.';

export interface Commands extends SlackEndpoint, KnownPeople {
  runs: Pick<RunStore, 'pendingApprovals'>;
}

/** `/countersign …`, answered to the one who typed it and nobody else. */
export async function command(slack: Commands, event: HttpEvent): Promise<HttpResponse> {
  const said = commandIn(bodyText(event));
  const tenant = await tenantSpeaking(slack, event, said?.speaker.team);
  const identity = said?.speaker.identity ?? '';
  const person = await personSpeaking(slack, tenant, identity);
  if (!person) return json(200, ephemeral(sentence(notKnown(identity))));
  if (said?.words[0] !== 'pending') return json(200, ephemeral(sentence(HELP)));
  const people = await slack.definitions.people(tenant);
  return json(200, ephemeral(await pendingMessage({ runs: slack.runs, people }, tenant)));
}
