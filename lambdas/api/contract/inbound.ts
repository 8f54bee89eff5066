import * as z from 'zod';
import { SIGNED_BODY_MAX_BYTES } from '../../entry/body-limits.ts';
import { type RouteDefinition, route } from './route.ts';
import { json } from './schemas.ts';

/** What other systems send. Each function verifies the signature over the raw body before it reads anything. */
const webhook = <const Source extends 'github' | 'servicenow'>(source: Source, summary: string) =>
  route({
    method: 'POST',
    path: `/webhooks/${source}/{tenant}`,
    right: 'signed',
    summary,
    params: z.object({ tenant: z.string().meta({ description: 'Name of the tenant', example: 'acme' }) }),
    body: json('The event, as the source sends it'),
    bodyMaxBytes: SIGNED_BODY_MAX_BYTES,
    responses: { 202: z.object({ runIds: z.array(z.string()), deduplicated: z.boolean() }) },
  });

export const githubRoutes = { receiveGithub: webhook('github', 'Receives a GitHub webhook and starts runs') };
export const servicenowRoutes = {
  receiveServicenow: webhook('servicenow', 'Receives a ServiceNow webhook and starts runs'),
};

export const genericRoutes = {
  receiveGeneric: route({
    method: 'POST',
    path: '/webhooks/generic/{tenant}/{source}',
    right: 'signed',
    summary: "Receives a webhook of a tenant's own source, with a Standard Webhooks signature, and starts runs",
    params: z.object({ tenant: z.string(), source: z.string() }),
    body: json('Any JSON'),
    bodyMaxBytes: SIGNED_BODY_MAX_BYTES,
    responses: { 202: z.object({ runIds: z.array(z.string()), deduplicated: z.boolean() }) },
  }),
};

const FORM = { bodyType: 'application/x-www-form-urlencoded' } as const;

const slack = <const Endpoint extends string>(
  endpoint: Endpoint,
  summary: string,
  body: Pick<RouteDefinition, 'bodyType'> = {},
) =>
  route({
    method: 'POST',
    path: `/slack/${endpoint}`,
    right: 'signed',
    summary,
    body: json('The request, as Slack sends it'),
    bodyMaxBytes: SIGNED_BODY_MAX_BYTES,
    ...body,
    responses: { 200: json('The response that Slack expects') },
  });

export const slackInteractivityRoutes = {
  receiveSlackInteraction: slack('interactivity', 'Receives clicks and forms from Slack', FORM),
};
export const slackCommandRoutes = { receiveSlackCommand: slack('commands', 'Receives the slash command', FORM) };
export const slackEventRoutes = {
  receiveSlackEvent: slack('events', 'Receives messages to the app, and the URL verification of the Events API'),
};
