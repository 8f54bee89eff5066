import type { AppsManifestCreateArguments } from '@slack/web-api';
import { expect, it } from 'vitest';
import { githubAppUrl, slackAppUrl, slackManifest } from '../../bin/commands/setup/handover.ts';
import { SLACK_BOT_SCOPES } from '../../lambdas/connectors/slack/scopes.ts';

const TENANT = { tenant: 'acme', stage: 'acme-prod', url: 'https://abc.execute-api.eu-west-1.amazonaws.com' };

it('the Slack manifest has the form of Slack’s own types, and the URLs of the stage', () => {
  const manifest = slackManifest(TENANT);
  const typed: AppsManifestCreateArguments['manifest'] = manifest;
  expect(typed.settings?.interactivity?.request_url).toBe(`${TENANT.url}/slack/interactivity`);
  expect(typed.settings?.event_subscriptions?.request_url).toBe(`${TENANT.url}/slack/events`);
  expect(manifest.features.slash_commands[0]?.url).toBe(`${TENANT.url}/slack/commands`);
  expect(manifest.oauth_config.scopes.bot).toEqual(SLACK_BOT_SCOPES);
  expect(manifest.settings.token_rotation_enabled).toBe(false);
  const name = slackManifest({ ...TENANT, tenant: 'a'.repeat(40) }).display_information.name;
  expect(name.length).toBeLessThanOrEqual(35);
  const opened = new URL(slackAppUrl(TENANT)).searchParams.get('manifest_json') ?? '';
  expect(JSON.parse(opened)).toEqual(manifest);
});

it('the registration page of GitHub gets URL, events and permissions, and no secret', () => {
  const { searchParams } = new URL(githubAppUrl(TENANT));
  expect(searchParams.get('webhook_url')).toBe(`${TENANT.url}/webhooks/github/acme`);
  expect(searchParams.getAll('events[]')).toContain('issues');
  expect(searchParams.get('issues')).toBe('write');
  expect([...searchParams.keys()].filter((key) => /secret/.test(key))).toEqual([]);
});
