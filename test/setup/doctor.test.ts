import { beforeEach, describe, expect, it } from 'vitest';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { OLIVIA } from '../approval/people.ts';
import { byTest } from '../fakes/by-test.ts';
import { GITHUB, SetupWorld } from './setup-world.ts';

const FILE =
  'name: gated\nsteps:\n  - { id: gate, tool: approval, with: { groups: [network], tier: high } }\n' +
  '  - { id: label, tool: github.labels.add, with: { owner: a, repo: b, number: 1, labels: [x] } }\n';
const SESSION =
  'name: triage\nsteps:\n  - id: triage\n    tool: agent.session\n    with:\n      configuration: triage\n' +
  '      prompt: Triage the issue.\n      actions: [{ tool: pagerduty.event }, { tool: http.get }]\n';
const NETWORK = { ...OLIVIA, id: 'nina', role: 'approver' as const, tier: 'high' as const, groups: ['network'] };

let world: SetupWorld;

/** A tenant in which nothing is missing. */
beforeEach(async () => {
  world = new SetupWorld();
  world.kind = 'prod';
  const { definitions } = world;
  const people = { olivia: OLIVIA, otto: { ...OLIVIA, id: 'otto' }, nina: NETWORK };
  for (const [id, person] of Object.entries(people)) {
    await definitions.savePerson('acme', { ...person, id, identities: [`slack:T0ACME/${id}`, `github:${id}`] });
  }
  await definitions.publishWorkflow('acme', parseWorkflow(FILE, 'f'), 1);
  await automation({});
  await definitions.saveSettings('acme', { caps: {}, workspaces: {}, counterShards: 1, approvalsChannel: '#ops' });
  for (const [name, connection] of Object.entries({ github: GITHUB, slack: SLACK })) {
    const { credential } = connection;
    expect((await world.save(name, { ...connection, planCredential: credential })).status).toBe(200);
  }
  world.documents.set('acme', 'webhook-signing', { github: ['a secret of 16 bytes'], slack: ['a secret of 16 bytes'] });
});

const SLACK = { baseUrl: 'https://slack.com', instance: 'T0ACME', credential: { botToken: 'xoxb-1' } };
const automation = (changed: object) =>
  world.definitions.saveAutomation('acme', {
    name: 'gate-issues',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github', event: 'issues.opened' },
    workflow: { name: 'gated', version: 1 },
    ...changed,
  });
const findings = async () =>
  (await world.ask('GET /api/v1/doctor')).body.findings as Record<'level' | 'subject' | 'problem' | 'fix', string>[];

it('finds nothing in a tenant that is complete', async () => {
  expect(await findings()).toEqual([]);
});

it('an agent of sessions needs a credential, and none for plans', async () => {
  const agent = { name: 'triage-agent', baseUrl: 'https://triage.example.com', instance: 'triage' };
  await world.definitions.saveConnection('acme', agent, byTest());
  expect(await findings()).toMatchObject([{ subject: 'connection triage-agent', problem: 'has no credential' }]);
  await world.save('triage-agent', { ...agent, name: undefined, credential: { token: 'agent_token' } });
  expect(await findings()).toEqual([]);
});

describe('finds, with the command that fixes it,', () => {
  it.each<[string, () => unknown, string, string, string]>([
    [
      'fewer than two owners in prod',
      async () => {
        const otto = await world.definitions.person('acme', 'otto');
        if (otto) await world.definitions.savePerson('acme', { ...otto, role: 'member' });
      },
      'people',
      'one owner',
      'countersign tenant owner',
    ],
    [
      'a person without identities',
      () => world.definitions.savePerson('acme', { ...NETWORK, id: 'max', role: 'member', identities: [] }),
      'person max',
      'no identities',
      'people put',
    ],
    [
      'nobody for a required approval',
      () => world.definitions.savePerson('acme', { ...NETWORK, groups: [], identities: ['slack:T0ACME/nina'] }),
      'workflow gated',
      'step gate: nobody can approve',
      'people put',
    ],
    [
      'a connection that a workflow uses',
      () =>
        world.definitions.deleteConnection(
          'acme',
          { name: 'github', baseUrl: GITHUB.baseUrl, instance: 'github.com' },
          BY,
        ),
      'connection github',
      'does not exist, and gate-issues uses it',
      'connections add',
    ],
    [
      'a connection that several automations use',
      async () => {
        await automation({ name: 'label-issues' });
        const { baseUrl, instance } = GITHUB;
        await world.definitions.deleteConnection('acme', { name: 'github', baseUrl, instance }, BY);
      },
      'connection github',
      'does not exist, and gate-issues, label-issues use it',
      'connections add',
    ],
    [
      'a missing credential',
      () => world.documents.set('acme', 'connections', {}),
      'connection github',
      'has no credential, and gate-issues uses it',
      'connections add',
    ],
    [
      'a malformed credential',
      () => world.documents.set('acme', 'connections', { github: { tokn: 'x' } }),
      'connection github',
      'needs "token"',
      'connections add',
    ],
    [
      'a secret that is no JSON object',
      () => world.documents.set('acme', 'plan-connections', undefined),
      'secret plan-connections',
      'not a JSON object',
      'connections add',
    ],
    [
      'a sender without a secret',
      () => world.documents.set('acme', 'webhook-signing', { slack: ['a secret of 16 bytes'] }),
      'webhook secret github',
      'every webhook is refused',
      'webhook set-secret github',
    ],
    [
      'a malformed signing secret',
      () => world.documents.set('acme', 'webhook-signing', { github: ['short'], slack: ['a secret of 16 bytes'] }),
      'webhook secret github',
      'at least 16',
      'webhook set-secret github',
    ],
    [
      'a rotation that has not ended',
      () =>
        world.documents.set('acme', 'webhook-signing', {
          github: ['a secret of 16 bytes', 'another of 16 bytes'],
          slack: ['a secret of 16 bytes'],
        }),
      'webhook secret github',
      'rotation has not ended',
      'webhook end-rotation github',
    ],
    [
      'a disabled automation',
      () => automation({ enabled: false }),
      'automation gate-issues',
      'is disabled',
      'countersign automations enable gate-issues',
    ],
    [
      'a workflow version that does not exist',
      () => automation({ workflow: { name: 'gated', version: 7 } }),
      'automation gate-issues',
      'the newest version is 1',
      'automations put',
    ],
    [
      'a key that is about to expire',
      () =>
        world.keys.push({ name: 'ci', person: 'olivia', expiresAt: new Date(world.clock.now() + 1000).toISOString() }),
      'API key ci of olivia',
      'expires at',
      'keys create',
    ],
    [
      'a key that is neither of a person nor of a program',
      () => world.keys.push({ name: 'unnamed-1', person: 'nightly-job' }),
      'API key unnamed-1',
      'nightly-job is neither a person of the tenant nor marked as a program',
      'keys revoke unnamed-1',
    ],
    [
      'an own webhook source without a secret',
      () => world.definitions.saveSource('acme', { name: 'alerts', enabled: true, title: 'Alert' }),
      'webhook secret generic/alerts',
      'every webhook is refused',
      'webhook set-secret generic/alerts',
    ],
    [
      'an http connection that allows no host',
      async () => {
        const call = '  - { id: call, tool: http.get, with: { url: "https://hooks.example.com/a" } }';
        await world.definitions.publishWorkflow('acme', parseWorkflow(`name: calls\nsteps:\n${call}\n`, 'f'), 1);
        await automation({ workflow: { name: 'calls', version: 1 } });
        await world.save('http', { baseUrl: 'https://hooks.example.com', instance: 'hooks' });
      },
      'connection http',
      'has no allowedHosts, so the calls of gate-issues are refused',
      'connections add',
    ],
    [
      'a connection that only the session of an automation may use',
      async () => {
        await world.definitions.publishWorkflow('acme', parseWorkflow(SESSION, 'f'), 1);
        await automation({ workflow: { name: 'triage', version: 1 } });
      },
      'connection pagerduty',
      'does not exist, and gate-issues uses it',
      'connections add',
    ],
    [
      'a connection that allows no host for the session of an automation',
      async () => {
        await world.definitions.publishWorkflow('acme', parseWorkflow(SESSION, 'f'), 1);
        await automation({ workflow: { name: 'triage', version: 1 } });
        await world.save('http', { baseUrl: 'https://hooks.example.com', instance: 'hooks' });
      },
      'connection http',
      'has no allowedHosts, so the calls of gate-issues are refused',
      'connections add',
    ],
    [
      'changes that wait for a second owner',
      () => {
        const at = new Date(world.clock.now()).toISOString();
        const expiresAt = new Date(world.clock.now() + 1000).toISOString();
        const change = {
          kind: 'person' as const,
          changeId: 'chg_1',
          person: 'nina',
          before: null,
          after: NETWORK,
          widens: [],
        };
        const pending = { ...change, requestedBy: 'olivia', requestedAt: at, expiresAt };
        return world.definitions.requestChange('acme', pending, BY, null);
      },
      'changes',
      '1 wait for a second owner',
      'changes pending',
    ],
    [
      'no channel for approvals',
      () => world.definitions.saveSettings('acme', { caps: {}, workspaces: {}, counterShards: 1 }),
      'settings',
      'no channel for approvals',
      'settings set approvalsChannel',
    ],
  ])('%s', async (_what, damage, subject, problem, fix) => {
    await damage();
    expect(await findings()).toContainEqual({
      level: expect.stringMatching(/^(error|warning)$/),
      subject,
      problem: expect.stringContaining(problem),
      fix: expect.stringContaining(fix),
    });
  });
});

const BY = byTest({ actor: 'olivia' });
