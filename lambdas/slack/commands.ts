import { type HttpAnswer, type HttpEvent, json } from '../entry/http.ts';
import type { RunStore } from '../run/run-store.ts';
import { sentence } from './blocks.ts';
import { commandIn } from './payloads.ts';
import { pendingMessage } from './pending.ts';
import { bodyText, type SlackDoor, tenantSpeaking } from './request.ts';
import { ephemeral } from './respond.ts';
import { type KnownPeople, notKnown, personSpeaking } from './speaker.ts';

const HELP = 'Type "/countersign pending" to see what waits for an approval, and who is needed for it.';

export interface Commands extends SlackDoor, KnownPeople {
  runs: Pick<RunStore, 'pendingApprovals'>;
}

/** `/countersign …`, answered to the one who typed it and nobody else. */
export async function command(slack: Commands, event: HttpEvent): Promise<HttpAnswer> {
  const said = commandIn(bodyText(event));
  const tenant = await tenantSpeaking(slack, event, said?.speaker.team);
  const identity = said?.speaker.identity ?? '';
  const person = await personSpeaking(slack, tenant, identity);
  if (!person) return json(200, ephemeral(sentence(notKnown(identity))));
  if (said?.words[0] !== 'pending') return json(200, ephemeral(sentence(HELP)));
  const people = await slack.definitions.people(tenant);
  return json(200, ephemeral(await pendingMessage({ runs: slack.runs, people }, tenant)));
}
