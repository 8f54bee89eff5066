import { SLACK_BOT_EVENTS, SLACK_BOT_SCOPES } from '../../../lambdas/connectors/slack/scopes.ts';

interface Tenant {
  tenant: string;
  stage: string;
  /** The URL of the stage. */
  url: string;
}

/** Slack shortens nothing: a longer name is refused. */
const SLACK_NAME_MAX_CHARACTERS = 35;

/** The Slack app of a tenant, in Slack's manifest format. Token rotation stays off: its tokens cannot be stored. */
export function slackManifest({ tenant, stage, url }: Tenant) {
  return {
    display_information: {
      name: `Countersign ${tenant}`.slice(0, SLACK_NAME_MAX_CHARACTERS),
      description: `Approvals of automated writes (${stage})`,
    },
    features: {
      bot_user: { display_name: 'countersign', always_online: true },
      app_home: { messages_tab_enabled: true, messages_tab_read_only_enabled: false },
      slash_commands: [
        {
          command: '/countersign',
          url: `${url}/slack/commands`,
          description: 'Lists approvals and runs, and starts runs',
          usage_hint: 'pending | list | status | run AUTOMATION | help',
          should_escape: false,
        },
      ],
    },
    oauth_config: { scopes: { bot: [...SLACK_BOT_SCOPES] } },
    settings: {
      event_subscriptions: { request_url: `${url}/slack/events`, bot_events: [...SLACK_BOT_EVENTS] },
      interactivity: { is_enabled: true, request_url: `${url}/slack/interactivity` },
      org_deploy_enabled: false,
      socket_mode_enabled: false,
      token_rotation_enabled: false,
    },
  };
}

/** The page on which Slack creates an app from a manifest. */
export const slackAppUrl = (tenant: Tenant): string =>
  `https://api.slack.com/apps?new_app=1&manifest_json=${encodeURIComponent(JSON.stringify(slackManifest(tenant)))}`;

const GITHUB_EVENTS = ['issues', 'issue_comment', 'pull_request', 'check_run'];
const GITHUB_PERMISSIONS = {
  issues: 'write',
  pull_requests: 'write',
  statuses: 'write',
  checks: 'read',
  metadata: 'read',
};

const webhookUrl = ({ tenant, url }: Tenant, source: string): string => `${url}/webhooks/${source}/${tenant}`;

/** GitHub's registration page for an app, filled in; without the webhook secret, which does not belong in a URL. */
export function githubAppUrl(tenant: Tenant): string {
  const query = new URLSearchParams({
    name: `countersign-${tenant.tenant}`,
    description: `Countersign, stage ${tenant.stage}`,
    url: tenant.url,
    public: 'false',
    webhook_active: 'true',
    webhook_url: webhookUrl(tenant, 'github'),
    ...GITHUB_PERMISSIONS,
  });
  for (const event of GITHUB_EVENTS) query.append('events[]', event);
  return `https://github.com/organizations/ORGANIZATION/settings/apps/new?${query}`;
}

export function githubText(tenant: Tenant, secretFile: string): string {
  return `# GitHub for the tenant ${tenant.tenant}

Webhook, of an app, an organization or a repository:

| setting | value |
|---|---|
| payload URL | ${webhookUrl(tenant, 'github')} |
| content type | application/json |
| secret | the content of ${secretFile} |

With a GitHub App: open this page (put in your organization), paste the secret, create the app, generate a private key and install the
app. Its credential is { appId, installationId, privateKeyPem: { file: key.pem } }.

${githubAppUrl(tenant)}

Without an app: a fine-grained token with read and write access to issues. Its credential is { token: { env: GITHUB_TOKEN } }.
`;
}

export function servicenowText(tenant: Tenant, secretFile: string): string {
  return `# ServiceNow for the tenant ${tenant.tenant}

System properties (docs/servicenow.md has the business rule that uses them):

| property | value |
|---|---|
| countersign.webhook.url | ${webhookUrl(tenant, 'servicenow')} |
| countersign.webhook.secret | the content of ${secretFile} |
`;
}

export function slackText(tenant: Tenant): string {
  return `# Slack for the tenant ${tenant.tenant}

1. Open this page, choose the workspace, and create the app. slack-app-manifest.json is the same manifest.
2. Install it. The bot token (xoxb-…) is the credential { botToken: { env: SLACK_BOT_TOKEN } }.
3. *Basic Information* shows the signing secret: webhookSecret: { env: SLACK_SIGNING_SECRET }.
4. When both are set, let Slack verify the address under *Event Subscriptions*: people can then write to the app.
5. Invite the app to the channel for approvals: /invite @countersign

${slackAppUrl(tenant)}
`;
}
