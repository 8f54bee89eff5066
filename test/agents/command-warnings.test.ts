import { describe, expect, it } from 'vitest';
import { type Agent, newAgent } from '../../lambdas/agents/agent.ts';
import { ProfileDefinition } from '../../lambdas/agents/profiles.ts';
import { commandWarnings } from '../../lambdas/proposal/command-warnings.ts';
import { MemoryAgents } from '../fakes/memory/memory-agents.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';

const AT = '2026-11-17T00:00:00.000Z';
const COMMAND = { command: '/usr/bin/systemctl', args: ['restart', 'web'], environment: 'staging' };

const agentNamed = (name: string, changes: Partial<Agent>, capabilities: string[] = []): Agent => ({
  ...newAgent({
    ...{ tenant: 'acme', agentId: `agt_${name}`, name, publicKey: 'x', environments: ['staging'] },
    ...{ networkSegment: null, enrolledAt: AT, enrolledBy: 'olivia' },
  }),
  registration: {
    ...{ bootId: 'b', protocol: 1, agentVersion: '1', capabilities, environments: ['staging'], slots: 1, at: AT },
    profiles: ['staging-standard'],
    host: { platform: 'linux', arch: 'x64', node: '24' },
  },
  ...changes,
});

async function warningsOf(input: object, agents: Agent[], tool = 'agent.command'): Promise<string[]> {
  const reader = { definitions: new MemoryDefinitions(), agents: new MemoryAgents() };
  const allow = [{ executable: '/usr/bin/systemctl', args: ['restart', '*'] }];
  await reader.definitions.saveProfile('acme', ProfileDefinition.parse({ name: 'staging-standard', allow }));
  for (const agent of agents) await reader.agents.create(agent);
  return commandWarnings(reader, 'acme', [{ id: 'restart', tool, input }]);
}

describe('a command', () => {
  it('that a list allows and an agent could run has no warning, also while the agent is offline or busy', async () => {
    expect(await warningsOf(COMMAND, [agentNamed('one', {})])).toEqual([]);
  });

  it('that the list of its profile does not allow has one, and its rollback, too', async () => {
    const rollback = { command: '/usr/bin/rm', args: ['-rf', '/'] };
    const warnings = await warningsOf({ ...COMMAND, args: ['stop', 'web'], rollback }, [agentNamed('one', {})]);
    expect(warnings).toEqual([
      expect.stringContaining('the allow list has /usr/bin/systemctl, but not with these arguments'),
      expect.stringContaining(
        'its rollback would be refused, profile staging-standard: the allow list does not have /usr/bin/rm',
      ),
    ]);
  });

  it.each([
    ['environment', { environment: 'dev' }, 'does not work in dev'],
    ['network segment', { segment: 'vpc-b' }, 'is not in the network segment vpc-b'],
    ['capability', { capabilities: ['database'] }, 'does not have database'],
  ])('that no agent could run because of its %s says why', async (_what, needs, why) => {
    const warnings = await warningsOf({ ...COMMAND, ...needs }, [
      agentNamed('one', { networkSegment: 'vpc-a' }, ['ssh']),
    ]);
    expect(warnings.at(-1)).toBe(`step restart: no agent could run it: one ${why}`);
    const able = agentNamed('two', { networkSegment: 'vpc-b', environments: ['staging', 'dev'] }, ['database']);
    const registration = able.registration && {
      ...able.registration,
      environments: able.environments,
      profiles: [...able.registration.profiles, 'dev-flex' as const],
    };
    const withAble = await warningsOf({ ...COMMAND, ...needs }, [agentNamed('one', {}), { ...able, registration }]);
    expect(withAble.filter((text) => text.includes('no agent'))).toEqual([]);
  });

  it('whose values are not known yet, or that is no command, has none', async () => {
    expect(await warningsOf({ ...COMMAND, args: ['{% trigger.title %}'] }, [])).toEqual([]);
    expect(await warningsOf(COMMAND, [], 'http.get')).toEqual([]);
  });
});
