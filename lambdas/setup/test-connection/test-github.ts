import * as z from 'zod';
import type { Access } from '../../connectors/connector.ts';
import { github, githubCredential } from '../../connectors/github/client.ts';
import { FORBIDDEN, unlessStatus } from '../../connectors/target-errors.ts';
import type { Observed } from './test-connection.ts';

const User = z.object({ login: z.string() });
const Repositories = z.object({ total_count: z.int(), repositories: z.array(z.object({ full_name: z.string() })) });
const Issues = z.array(z.object({ number: z.int() }));

/** Scopes of classic tokens that can write to issues: of all repositories, of public ones only. */
const WRITING_SCOPES = ['repo', 'public_repo'];

/** A token reads its own user; an app, which has none, the first repository of its installation. */
export function testGithub(access: Access): Promise<Observed[]> {
  return 'token' in githubCredential(access) ? testToken(access) : testApp(access);
}

async function testToken(access: Access): Promise<Observed[]> {
  const { body, header } = await github(access, { method: 'GET', path: '/user', responseSchema: User });
  // Only classic tokens list their scopes.
  const listed = header('x-oauth-scopes');
  const scopes = listed?.split(',').map((scope) => scope.trim()) ?? [];
  const lacksScope = listed !== null && listed !== undefined && !WRITING_SCOPES.some((each) => scopes.includes(each));
  return [
    { level: 'ok', text: `GitHub knows the token as ${body.login}` },
    ...(lacksScope
      ? [{ level: 'warning' as const, text: 'the token lacks the scope repo (or public_repo): it can only read' }]
      : []),
  ];
}

async function testApp(access: Access): Promise<Observed[]> {
  const { body } = await github(access, {
    method: 'GET',
    path: '/installation/repositories?per_page=1',
    responseSchema: Repositories,
  });
  const [first] = body.repositories;
  if (!first)
    return [{ level: 'error', text: 'the app is installed, but for no repository: add some to the installation' }];
  const path = `/repos/${first.full_name}/issues?per_page=1`;
  const issues = await github(access, { method: 'GET', path, responseSchema: Issues }).catch(unlessStatus(FORBIDDEN));
  if (!issues)
    return [
      { level: 'error', text: 'the app lacks the permission Issues: add it, and accept it for the installation' },
    ];
  return [{ level: 'ok', text: `the app can read ${body.total_count} repositories, ${first.full_name} among them` }];
}
