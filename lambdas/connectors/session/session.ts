import * as z from 'zod';
import { sha256Hex } from '../../run/canonical-json.ts';
import { operation, type WriteContext, writeKey } from '../connector.ts';
import { a2aProvider } from './a2a-provider.ts';
import { SessionInput } from './session-input.ts';
import type { SessionContract, SessionPrompt } from './session-provider.ts';

export const SESSION_TOOL = 'agent.session';

const SessionOutput = z.lazy(() =>
  z.strictObject({
    outcome: z.string().describe('what the session reported'),
    summary: z.string(),
    output: z.unknown().describe('what it returned'),
    actions: z.array(z.string()).describe('the ids of its actions'),
  }),
);

/**
 * Starts a session and prompts it, once: a write of effect `probe`, whose mark is the key of the session. The step then waits
 * for the completion (worker/session/).
 */
export const startSession = operation<SessionInput>({
  tool: SESSION_TOOL,
  summary: 'Starts a session of an AI agent, or of other work outside, and waits until it completes.',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  oncePerRun: true,
  // The worker has put the connection of the configuration into the input.
  connectionIn: (input) => {
    const { resolved } = (input ?? {}) as Partial<SessionInput>;
    return resolved && 'connection' in resolved ? resolved.connection : undefined;
  },
  input: SessionInput,
  output: SessionOutput,
  content: ['prompt', 'context'],
  fixed: ['configuration', 'url', 'command', 'actions', 'maxActions', 'timeoutSeconds'],
  // What a session returns is treated like the answer of a model.
  asksModel: true,
  propose: (input) => {
    const { configuration = '', prompt, context, actions, maxActions, timeoutSeconds, resolved } = input;
    const fields = {
      ...{ configuration, ...placeOf(resolved), prompt, actions, maxActions, timeoutSeconds },
      ...(context !== undefined && { context }),
    };
    return {
      target: `agent:session:${configuration}`,
      fields,
      key: writeKey(['agent', 'session', configuration], fields),
    };
  },
  async perform(input, context) {
    const { place, contract } = startedBy(input, context);
    // The commit that records its start creates the run of its command (worker/session/await-session.ts).
    if ('command' in place) return result({ sessionId: commandRunId(contract) });
    return result(await a2aProvider.start(context.access, place.url, contract, promptOf(input, contract)));
  },
  async probe(input, context) {
    const { place, contract } = startedBy(input, context);
    if ('command' in place) return undefined;
    const { url } = place;
    const found = await a2aProvider.find(context.access, url, contract.sessionKey);
    return found && { ...result(found), recovered: true };
  },
});

function startedBy({ resolved }: SessionInput, { session: contract }: WriteContext) {
  if (!resolved || !contract) throw new Error('the worker resolves the configuration before it starts a session');
  return { place: resolved, contract };
}

const placeOf = (resolved: SessionInput['resolved']) =>
  resolved && 'command' in resolved ? { command: resolved.command } : { url: resolved?.url ?? '' };

/** The same for every attempt to start the session. */
const commandRunId = ({ sessionKey }: SessionContract): string => `run_${sha256Hex(sessionKey).slice(0, 32)}`;

const result = (output: { sessionId: string }) => ({
  output,
  reversal: { irreversible: 'a session cannot be undone; its actions can' },
  response: {},
});

/** The instructions come first, then the task, then the contract: how to act and how to complete. */
export function promptOf(
  { prompt, context, actions, maxActions, resolved }: SessionInput,
  contract: Pick<SessionContract, 'runId' | 'completionId' | 'until' | 'ownUrl'> & { token?: string },
): SessionPrompt {
  const { runId, completionId, token, until, ownUrl } = contract;
  const base = `${ownUrl.replace(/\/+$/, '')}/api/v1/runs/${runId}`;
  const text = [
    resolved?.instructions,
    prompt,
    `This is a session of the Countersign run ${runId}. Send every request with "Authorization: Bearer <token>"; the token is in the data of this message, and valid until ${until}.`,
    `To change something, propose an action: POST ${base}/actions with {"tool", "input"} and an Idempotency-Key. Policy and people decide. GET ${base}/actions/<actionId> returns its outcome. Change nothing in another way.`,
    `While you work for longer than ten minutes, POST ${base}/heartbeat.`,
    `When you are done, POST ${base}/complete with {"completion_id": "${completionId}", "outcome": "succeeded" | "failed" | "needs_human", "summary", "output"}. A response with the code SESSION_STARTING means: repeat the request after a few seconds.`,
  ]
    .filter((part) => part !== undefined)
    .join('\n\n');
  const data = {
    run_id: runId,
    completion_id: completionId,
    ...(token !== undefined && { token }),
    urls: { actions: `${base}/actions`, complete: `${base}/complete`, heartbeat: `${base}/heartbeat` },
    expires_at: until,
    actions,
    max_actions: maxActions,
    ...(context !== undefined && { context }),
  };
  return { text, data };
}
