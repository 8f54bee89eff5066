import * as z from 'zod';
import { Problem } from '../entry/http.ts';
import { hashOf } from '../run/canonical-json.ts';
import { deliveryKey } from '../run/idempotency.ts';
import { checkGithubEvent } from './check-github-event.ts';
import type { Delivery } from './delivery.ts';
import { githubMakers } from './delivery-makers.ts';

/** Only the fields in use; GitHub has more than seventy events and adds fields at any time. */
const Titled = z.looseObject({
  number: z.number().optional(),
  title: z.string().nullish(),
  html_url: z.string().optional(),
});
const Payload = z.looseObject({
  action: z.string().max(200).optional(),
  repository: z
    .looseObject({
      name: z.string().optional(),
      full_name: z.string().max(300).optional(),
      html_url: z.string().optional(),
    })
    .nullish(),
  sender: z.looseObject({ login: z.string().optional() }).nullish(),
  issue: Titled.nullish(),
  pull_request: Titled.nullish(),
  discussion: Titled.nullish(),
});

const EVENT_NAME = /^[a-z][a-z0-9_]{0,99}$/;
const DELIVERY_ID = /^[A-Za-z0-9-]{1,100}$/;
const HOOK_ID = /^[A-Za-z0-9-]{1,40}$/;

export function githubDelivery(headers: Record<string, string | undefined>, payload: unknown): Delivery {
  const name = headers['x-github-event'] ?? '';
  const deliveryId = headers['x-github-delivery'] ?? '';
  if (!EVENT_NAME.test(name))
    throw new Problem(400, 'BAD_REQUEST', 'the header X-GitHub-Event is missing or malformed');
  if (!DELIVERY_ID.test(deliveryId)) {
    throw new Problem(400, 'BAD_REQUEST', 'the header X-GitHub-Delivery is missing or malformed');
  }
  const parsed = Payload.safeParse(payload);
  if (!parsed.success) throw new Problem(400, 'BAD_REQUEST', `not a GitHub event: ${z.prettifyError(parsed.error)}`);
  checkGithubEvent(name, parsed.data);
  const hook = headers['x-github-hook-id'];
  const { action, repository, sender, issue, pull_request, discussion } = parsed.data;
  const about = issue ?? pull_request ?? discussion;
  const [owner, repo] = repository?.full_name?.split('/') ?? [];
  const event = action ? `${name}.${action}` : name;
  return {
    source: 'github',
    event,
    key: deliveryKey.github({ deliveryId }),
    ...(hook !== undefined && HOOK_ID.test(hook) && { hook }),
    bodyIsKey: true,
    ...(pull_request?.number !== undefined && { burstKey: burstKey(event, parsed.data) }),
    ...(repository?.full_name && {
      subject: `github:${repository.full_name}${about?.number === undefined ? '' : `#${about.number}`}`,
    }),
    fields: {
      title: about?.title ?? `${event}${repository?.full_name ? ` in ${repository.full_name}` : ''}`,
      actor: sender?.login,
      url: about?.html_url ?? repository?.html_url,
      owner,
      repo,
      number: about?.number,
      action,
    },
    payload,
    makers: githubMakers(parsed.data),
  };
}

/** The content of an event is the same from every hook, except for these members, which depend on the hook. */
function burstKey(event: string, payload: z.infer<typeof Payload>): string {
  const { installation: _app, organization: _organizationHook, enterprise: _enterpriseHook, ...content } = payload;
  return deliveryKey.githubBurst({ event, contentHash: hashOf(content) });
}
