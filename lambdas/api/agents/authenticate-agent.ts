import type { Agent } from '../../agents/agent.ts';
import type { AgentRegistry } from '../../agents/agent-registry.ts';
import type { AgentCaller } from '../../agents/agent-requests.ts';
import { parseNonce, parsePublicKey, type VerifiedRequest, verifyRequest } from '../../agents/request-signature.ts';
import { type HttpEvent, Problem, rawBody } from '../../entry/http.ts';
import { type Clock, isoNow } from '../../entry/ports.ts';
import { tenantOfAgentId } from './enrolment-token.ts';

export interface AgentAuthenticator {
  agents: Pick<AgentRegistry, 'agent'>;
  clock: Clock;
}

/**
 * How a route is protected against requests that are sent again. A signature is valid for two minutes, so a replay is
 * possible only within that time.
 *
 * - `ordered`: the counter of the nonce must be greater than the stored one. The route writes the row of the agent, or
 *   would write it if something had changed, and stores the counter in that same write: no request costs one more.
 *   A replayed drain cannot undo a resume, and a replayed sync cannot renew a lease after a newer sync.
 * - `idempotent`: the same request again changes nothing, because the assignment (status and lease) and the output
 *   (number of the chunk) decide. Agents send such requests at the same time as syncs, in any order, so their counter is
 *   not compared.
 * - `register`: a new process has a new counter. Its request must be newer than the last registration, and than the end of
 *   the last process; a process that has unregistered does not register again.
 */
export type ReplayRule = 'ordered' | 'idempotent' | 'register';

export type AuthenticatedAgent = AgentCaller & { agent: Agent; requestCounter: number };

/** Checks the signature of a request, and that the process that sent it is the one that registered last. */
export async function authenticateAgent(
  { agents, clock }: AgentAuthenticator,
  event: HttpEvent,
  rule: ReplayRule,
): Promise<AuthenticatedAgent> {
  let agent: Agent | undefined;
  const request = await verified(event, clock, async (keyId) => {
    const tenant = tenantOfAgentId(keyId);
    agent = tenant === undefined ? undefined : await agents.agent(tenant, keyId);
    return agent && parsePublicKey(agent.publicKey);
  });
  const nonce = parseNonce(request.nonce);
  if (!agent || !nonce) {
    throw new Problem(401, 'SIGNATURE_INVALID', 'the nonce must be the boot_id, a dot and a counter');
  }
  const named = event.pathParameters?.id;
  if (named !== undefined && named !== agent.agentId) {
    throw new Problem(403, 'FORBIDDEN', `the request names ${named} and is signed by ${agent.agentId}`);
  }
  const caller = { agent, bootId: nonce.bootId, requestCounter: nonce.counter };
  if (rule === 'register') assertNewProcess(caller, request.created, clock);
  else assertRegistered(caller);
  if (rule !== 'idempotent') assertGrows(caller);
  return caller;
}

/** Checks a signature, or throws a 401. */
export async function verified(
  event: HttpEvent,
  clock: Clock,
  findKey: Parameters<typeof verifyRequest>[2],
): Promise<Extract<VerifiedRequest, { valid: true }>> {
  const { http } = event.requestContext;
  const result = await verifyRequest(
    {
      method: http.method,
      path: event.rawPath,
      query: event.rawQueryString,
      body: rawBody(event),
      headers: event.headers,
    },
    clock.now(),
    findKey,
  );
  if (result.valid) return result;
  if (result.code === 'SIGNATURE_EXPIRED') {
    throw new Problem(401, 'SIGNATURE_EXPIRED', result.message, { server_time: isoNow(clock) });
  }
  throw new Problem(401, 'SIGNATURE_INVALID', result.message);
}

/** Two processes with one identity: the one that registered last counts, the other must stop. */
function assertRegistered({ agent, bootId }: AuthenticatedAgent): void {
  if (!agent.registration) {
    throw new Problem(409, 'AGENT_NOT_REGISTERED', `no process of ${agent.name} is registered; register first`);
  }
  if (agent.registration.bootId === bootId) return;
  throw new Problem(
    409,
    'AGENT_IDENTITY_IN_USE',
    `another process of ${agent.name} registered at ${agent.registration.at}; stop this one, or enrol it as its own agent`,
  );
}

/** `created` has seconds. */
const SECOND_MS = 1000;

function assertNewProcess(
  { agent: { registration, unregistered, name }, bootId }: AuthenticatedAgent,
  created: number,
  clock: Clock,
): void {
  if (registration?.bootId === bootId) return;
  const lastAt = registration?.at ?? unregistered?.at;
  const isNewer = lastAt === undefined || created + SECOND_MS > Date.parse(lastAt);
  if (isNewer && unregistered?.bootId !== bootId) return;
  throw new Problem(
    409,
    'REQUEST_REPLAYED',
    `a process of ${name} registered or ended after this request was signed; sign it again`,
    // A process with a slow clock corrects it, and signs again.
    { server_time: isoNow(clock) },
  );
}

function assertGrows({ agent, bootId, requestCounter }: AuthenticatedAgent): void {
  if (agent.registration?.bootId !== bootId || requestCounter > (agent.requestCounter ?? -1)) return;
  throw new Problem(
    409,
    'REQUEST_REPLAYED',
    `the counter ${requestCounter} was used before; sign the request with a greater one`,
  );
}
