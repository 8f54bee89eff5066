import { type HttpEvent, type HttpResponse, json } from '../entry/http.ts';
import type { RunStore } from '../run/run-store.ts';
import { sentence } from './block-kit.ts';
import { pendingList } from './card/pending-list.ts';
import { ephemeral } from './reply-to-click.ts';
import { parseCommand } from './request/payloads.ts';
import { bodyText, type SlackEndpoint, tenantOfRequest } from './request/signed-request.ts';
import { findSlackPerson, type KnownPeople, unknownUser } from './request/slack-user.ts';

const HELP = 'Type "/countersign pending" to see the pending approvals and who can decide them.';

export interface Commands extends SlackEndpoint, KnownPeople {
  runs: Pick<RunStore, 'pendingApprovals'>;
}

/** Handles `/countersign …`. Only the person who typed it sees the response. */
export async function handleCommand(slack: Commands, event: HttpEvent): Promise<HttpResponse> {
  const parsed = parseCommand(bodyText(event));
  const tenant = await tenantOfRequest(slack, event, parsed?.user.team);
  const identity = parsed?.user.identity ?? '';
  const person = await findSlackPerson(slack, tenant, identity);
  if (!person) return json(200, ephemeral(sentence(unknownUser(identity))));
  if (parsed?.args[0] !== 'pending') return json(200, ephemeral(sentence(HELP)));
  const people = await slack.definitions.people(tenant);
  return json(200, ephemeral(await pendingList({ runs: slack.runs, people }, tenant)));
}
