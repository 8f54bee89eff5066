import { type Agent, heldAt, stateOf } from '../../agents/agent.ts';
import { changeAgent, registerAgent, unregisterAgent } from '../../agents/agent-lifecycle.ts';
import type { AgentRegistry } from '../../agents/agent-registry.ts';
import { INTERVALS } from '../../agents/agent-terms.ts';
import type { Introductions } from '../../agents/introduce-keys.ts';
import { EnrolRequest } from '../../agents/protocol.ts';
import { keyThumbprint, parsePublicKey } from '../../agents/request-signature.ts';
import { type HttpEvent, type HttpResponse, Problem, parseJsonBody, rawBody } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import { agentEnrolRoutes } from '../contract/agents.ts';
import { routeKey } from '../contract/route.ts';
import { router } from '../router.ts';
import { type AuthenticatedAgent, authenticateAgent, type ReplayRule, verified } from './authenticate-agent.ts';
import { type Enroller, enrolAgent } from './enrol-agent.ts';

export interface AgentEnrolPorts extends Enroller {
  /** The URL of the WebSocket API; undefined if the stage has no live feed. */
  liveUrl: string | undefined;
  agents: AgentRegistry;
  /** The evidence keys that replaced others, each signed by the key before. */
  introductions(): Promise<Introductions>;
}
/** Per request: who sent it. */
type Signed = AgentEnrolPorts & { caller: AuthenticatedAgent; keyThumbprint: string };

const handle = router<Signed, typeof agentEnrolRoutes>(agentEnrolRoutes, {
  async enrolAgent(ports, { body }) {
    return { status: 201, body: await enrolAgent(ports, body, ports.keyThumbprint) };
  },

  async registerAgent(ports, { body }) {
    if (body.boot_id !== ports.caller.bootId) {
      throw new Problem(400, 'BAD_REQUEST', 'boot_id: the nonce of the signature has another one');
    }
    const agent = await registerAgent(ports, ports.caller, body);
    const state = stateOf(agent, isoNow(ports.clock));
    // An agent without new keys can still work, or asks again when it needs one.
    const new_signing_keys = await ports.introductions().catch((error: unknown) => {
      ports.log.warn('new keys could not be introduced to an agent', { agentId: agent.agentId, error });
      return [];
    });
    const socket = ports.liveUrl === undefined ? {} : { socket: { url: ports.liveUrl } };
    return { status: 200, body: { state, intervals: INTERVALS, new_signing_keys, ...socket } };
  },

  async drainSelf(ports, { body: { reason } }) {
    const { agent: read, requestCounter } = ports.caller;
    const at = isoNow(ports.clock);
    const agent = await changeAgent(ports, read, (now) => {
      if (requestCounter <= (now.requestCounter ?? -1)) throw replayed(now);
      const draining = now.draining ?? { at, by: now.agentId, ...(reason !== undefined && { reason }) };
      return { ...now, draining, requestCounter };
    });
    return { status: 200, body: drained(agent, at) };
  },

  async unregisterAgent(ports) {
    const agent = await unregisterAgent(ports, ports.caller.agent);
    return { status: 200, body: drained(agent, isoNow(ports.clock)) };
  },
});

const RULES: Record<string, ReplayRule> = {
  [routeKey(agentEnrolRoutes.registerAgent)]: 'register',
  [routeKey(agentEnrolRoutes.drainSelf)]: 'ordered',
  [routeKey(agentEnrolRoutes.unregisterAgent)]: 'ordered',
};

/** Handles the life of an agent: it enrols once, registers with each start, drains and unregisters. */
export async function handleAgentEnrol(ports: AgentEnrolPorts, event: HttpEvent): Promise<HttpResponse> {
  const rule = RULES[event.routeKey];
  if (!rule) return handle({ ...ports, keyThumbprint: await ownKey(ports, event) } as Signed, event);
  return handle({ ...ports, caller: await authenticateAgent(ports, event, rule) } as Signed, event);
}

/** A new agent proves that it has the private key: its request is signed with it and names its thumbprint. */
async function ownKey({ clock }: AgentEnrolPorts, event: HttpEvent): Promise<string> {
  const request = EnrolRequest.safeParse(parseJsonBody(rawBody(event).toString('utf8')));
  const key = request.success ? parsePublicKey(request.data.public_key) : undefined;
  if (request.success && !key) {
    throw new Problem(400, 'BAD_REQUEST', 'public_key: send an Ed25519 public key as SPKI in base64');
  }
  // A body of another form is refused by the router, which says what is wrong.
  if (!key) return '';
  const { keyId } = await verified(event, clock, (named) => (named === keyThumbprint(key) ? key : undefined));
  return keyId;
}

const drained = (agent: Agent, at: string) => ({
  state: stateOf(agent, at),
  running: heldAt(agent, at).filter(({ state }) => state === 'acknowledged').length,
});

const replayed = ({ name }: Agent): Problem =>
  new Problem(409, 'REQUEST_REPLAYED', `${name} has sent a newer request; sign the request again`);
