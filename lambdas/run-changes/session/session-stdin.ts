import type { Run, Trigger } from '../../run/run.ts';
import { sealSessionToken } from './session-token.ts';

/**
 * What the command of a session reads on its standard input: its prompt with the token. It is not stored, because the token is
 * not; it is the same each time, so the signed assignment names its hash. Undefined for any other command.
 */
export async function sessionStdin(
  secret: (() => Promise<string>) | undefined,
  { tenant, request }: Pick<Run, 'tenant' | 'request'>,
  { action }: Pick<Trigger, 'action'>,
): Promise<string | undefined> {
  const { session } = action ?? {};
  const of = request?.action?.of;
  if (!session || !of || !secret) return undefined;
  const { stepIndex, until: expiresAt, prompt } = session;
  const token = sealSessionToken({ tenant, runId: of.runId, stepIndex, expiresAt }, await secret());
  return `${JSON.stringify({ ...prompt, data: { ...prompt.data, token } })}\n`;
}
