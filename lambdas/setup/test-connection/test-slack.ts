import * as z from 'zod';
import type { Access } from '../../connectors/connector.ts';
import { exchange, urlAt } from '../../connectors/exchange.ts';
import { botTokenOf, findChannel } from '../../connectors/slack/client.ts';
import { slackError } from '../../connectors/slack/errors.ts';
import { SLACK_BOT_SCOPES } from '../../connectors/slack/scopes.ts';
import type { Observed, TestSettings } from './test-connection.ts';

const AuthTest = z.union([
  z.object({ ok: z.literal(false), error: z.string() }),
  z.object({ ok: z.literal(true), team: z.string(), team_id: z.string(), user: z.string() }),
]);

export async function testSlack(access: Access, { approvalsChannel, credential }: TestSettings): Promise<Observed[]> {
  const { body, header } = await exchange({
    system: 'Slack',
    method: 'GET',
    url: urlAt(access.baseUrl, '/api/auth.test'),
    headers: { authorization: `Bearer ${botTokenOf(access)}` },
    responseSchema: AuthTest,
  });
  if (!body.ok) throw slackError(body.error, 'GET');
  const { team, team_id, user } = body;
  if (team_id !== access.instance) {
    const text = `wrong instance: the token belongs to the workspace ${team_id}, and \`instance\` is ${access.instance}`;
    return [{ level: 'error', text }];
  }
  const missing = missingScopes(header('x-oauth-scopes'));
  return [
    { level: 'ok', text: `the app is ${user} in the workspace ${team} (${team_id})` },
    ...(missing.length > 0
      ? [
          {
            level: 'error' as const,
            text: `the app lacks the scopes ${missing.join(', ')}: add them, and reinstall it`,
          },
        ]
      : credential === 'credential'
        ? await channelProblem(access, approvalsChannel)
        : []),
  ];
}

function missingScopes(listed: string | null | undefined): string[] {
  if (listed === null || listed === undefined) return [];
  const granted = listed.split(',').map((scope) => scope.trim());
  return SLACK_BOT_SCOPES.filter((scope) => !granted.includes(scope));
}

async function channelProblem(access: Access, channel: string): Promise<Observed[]> {
  if (await findChannel(access, channel)) return [];
  return [{ level: 'warning', text: `the app is not in ${channel}: invite it there, or nobody sees the approvals` }];
}
