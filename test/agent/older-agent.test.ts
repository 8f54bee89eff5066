import { expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.ts';
import { type VerifyContext, verifyAssignment } from '../../agent/verify-assignment.ts';
import { AssignmentStatement } from '../../lambdas/agents/protocol.ts';
import { AGENT_ID, FakeRuntime, TENANT } from './fake-runtime.ts';

/** Statements as agents knew them before sessions could be commands. */
const EarlierStatement = AssignmentStatement.omit({ stdin_sha256: true });

const NOW = Date.parse('2026-11-16T10:00:00Z');
const runtime = new FakeRuntime(() => NOW);
const context: VerifyContext = {
  identity: {
    ...{ version: 1, url: 'https://stage.example', agent_id: AGENT_ID, tenant: TENANT, name: 'demo' },
    ...{ environments: ['dev'], network_segment: null, signing_keys: runtime.signingKeys },
    enrolled_at: '2026-11-01T00:00:00Z',
  },
  config: parseConfig({}, 'agent.yaml'),
  ...{ profiles: ['dev-flex'], now: NOW, notBefore: 0 },
};
const verify = (statement: AssignmentStatement) =>
  verifyAssignment(statement.assignment_id, runtime.envelope(statement), context);

it('an agent of an earlier release refuses the command of a session, and runs other commands as before', () => {
  const command = runtime.statement({ network_segment: null });
  expect(EarlierStatement.safeParse(command).success).toBe(true);
  expect(EarlierStatement.safeParse({ ...command, stdin_sha256: '0'.repeat(64) }).success).toBe(false);
  // What an agent does with a signed statement that has a field it does not know.
  expect(verify(command)).toEqual({ statement: command });
  expect(verify({ ...command, field_of_a_later_release: true } as AssignmentStatement)).toEqual({
    refusal: 'unable',
    reason: 'the statement has fields that this version does not know; update the agent',
    leaseVersion: command.lease_version,
  });
});
