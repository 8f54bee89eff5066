import type * as z from 'zod';
import { type Agent, heldAt, isOffline, stateOf, withAssignment } from '../../agents/agent.ts';
import { changeAgent } from '../../agents/agent-lifecycle.ts';
import type { AgentCaller, SyncAgent, SyncResult } from '../../agents/agent-requests.ts';
import { type Assignment, type AssignmentPlace, placeOf } from '../../agents/assignment.ts';
import type { HeartbeatRequest } from '../../agents/protocol.ts';
import { isoNow } from '../../entry/ports.ts';
import { CountersignError } from '../../run/errors.ts';
import { AGENT_HOLDS_MS, later } from '../../run/lease.ts';
import type { Run, StopRequest } from '../../run/run.ts';
import { agentsAreEnabled } from '../../run/settings/caps.ts';
import type { RunningStep } from '../../run/step.ts';
import { controlRun } from '../../run-changes/control/control-run.ts';
import type { AgentPorts } from './agent-ports.ts';

/** The row is not written more often, unless something else than the time has changed. */
const WRITTEN_EVERY_MS = 10_000;
/** Who cancels runs when agents are switched off. */
const BACKOUT = { actor: 'system', reason: 'backout' };

type Request = z.infer<typeof HeartbeatRequest>;
type Renewed = { assignmentId: string; expiresAt: string };

/**
 * The sync of an agent: renews the leases of the commands that it runs, and returns new assignments and the commands that
 * it must stop. A process renews only what it has acknowledged itself.
 */
export const syncAgent: SyncAgent<AgentPorts> = async (ports, caller, request) => {
  const { agent } = caller;
  const settings = await ports.definitions.settings(agent.tenant);
  const enabled = agentsAreEnabled(settings);
  const leases: SyncResult['leases'] = [];
  const cancels: SyncResult['cancels'] = [];
  for (const running of request.running) {
    const { assignment_id } = running;
    const held = await heldStep(ports, caller, running);
    const expiresAt = held && (await renew(ports, agent.tenant, held));
    leases.push({ assignment_id, expires_at: expiresAt ?? null });
    const stop = held && (await stopOf(ports, held.run, enabled));
    if (stop) cancels.push({ assignment_id, reason: stop.reason ?? STOPPED_BY[stop.kind] });
  }
  const renewed = leases.flatMap(({ assignment_id: assignmentId, expires_at: expiresAt }) =>
    expiresAt === null ? [] : [{ assignmentId, expiresAt }],
  );
  const at = isoNow(ports.clock);
  const seen = await changeAgent(ports, agent, (now) => synced(now, caller, request, renewed, at));
  return {
    state: stateOf(seen, at),
    assignments: enabled && !seen.draining ? await offersOf(ports, seen, at) : [],
    leases,
    cancels,
    drain: !enabled || seen.draining !== undefined,
  };
};

interface HeldStep extends AssignmentPlace {
  run: Run;
  step: RunningStep;
}

/** The step that this process of the agent performs under this lease; undefined if the lease is lost. */
async function heldStep(
  { runs }: AgentPorts,
  { agent, bootId }: AgentCaller,
  { assignment_id, lease_version }: Request['running'][number],
): Promise<HeldStep | undefined> {
  const place = placeOf(assignment_id);
  if (place?.leaseVersion !== lease_version) return undefined;
  const found = await runs.runAndStep(agent.tenant, place.runId, place.stepIndex);
  const step = found?.step;
  if (!found || step?.status !== 'running' || step.leaseVersion !== lease_version) return undefined;
  const isOurs = step.assigned?.agentId === agent.agentId && step.assigned.bootId === bootId;
  return isOurs ? { ...place, run: found.run, step } : undefined;
}

async function renew({ runs, clock }: AgentPorts, tenant: string, held: HeldStep): Promise<string | undefined> {
  const expiresAt = later(isoNow(clock), AGENT_HOLDS_MS);
  return (await runs.renewLease(tenant, held.runId, held.step, expiresAt)) ? expiresAt : undefined;
}

const STOPPED_BY: Record<StopRequest['kind'], string> = {
  cancel: 'the run is canceled',
  pause: 'the run is paused',
  rollback: 'the run is rolled back',
};

/** A paused run finishes its command. If agents are switched off, the run is canceled first. */
async function stopOf(ports: AgentPorts, run: Run, enabled: boolean): Promise<Omit<StopRequest, 'at'> | undefined> {
  if (!enabled) {
    await backOut(ports, run);
    return { kind: 'cancel', ...BACKOUT };
  }
  return run.stopRequest?.kind === 'pause' ? undefined : run.stopRequest;
}

async function backOut(ports: AgentPorts, { tenant, runId }: Run): Promise<void> {
  const { actor, reason } = BACKOUT;
  try {
    await controlRun(ports, { tenant, runId }, { kind: 'cancel', reason }, actor);
  } catch (error) {
    // It has ended, or is changing too fast: the next sync tries again.
    if (!(error instanceof CountersignError)) throw error;
    ports.log.info('a run could not be canceled', { tenant, runId, error });
  }
}

/** The row after this sync; undefined if it need not be written. */
function synced(
  now: Agent,
  { requestCounter }: AgentCaller,
  { errored, socket }: Request,
  renewed: readonly Renewed[],
  at: string,
): Agent | undefined {
  const { errored: before, ...facts } = now;
  const live = { ...facts, assignments: heldAt(now, at) };
  const renewing = renewed.reduce(
    (agent, { assignmentId, expiresAt }) =>
      withAssignment(agent, { assignmentId, state: 'acknowledged', until: expiresAt }, at),
    live,
  );
  const cameBack = now.lastSyncAt !== undefined && isOffline(now, at);
  const changed =
    socket !== (now.socket ?? false) ||
    errored !== before?.reason ||
    cameBack ||
    // The counter must be stored with each renewal: a replay could otherwise keep the lease of an agent that is lost.
    renewed.length > 0 ||
    renewing.assignments.length !== now.assignments.length;
  const age = now.lastSyncAt === undefined ? WRITTEN_EVERY_MS : Date.parse(at) - Date.parse(now.lastSyncAt);
  if (!changed && age < WRITTEN_EVERY_MS) return undefined;
  return {
    ...renewing,
    socket,
    lastSyncAt: at,
    ...(requestCounter !== undefined && { requestCounter }),
    ...(errored !== undefined && { errored: { at, reason: errored }, erroredAt: at }),
    ...(cameBack && { backOnlineAt: at }),
  };
}

/** The offers that the agent has not acknowledged. A response may be lost, so they are repeated until they expire. */
async function offersOf({ agents }: AgentPorts, agent: Agent, at: string): Promise<SyncResult['assignments']> {
  const offered = heldAt(agent, at).filter(({ state }) => state === 'offered');
  const rows: (Assignment | undefined)[] = [];
  // One after the other: if one of several failed, AWS would suspend the function while the others are open.
  for (const { assignmentId } of offered) {
    const place = placeOf(assignmentId);
    if (place) rows.push(await agents.assignment(agent.tenant, place));
  }
  return rows.flatMap((row) =>
    row?.status === 'offered' && row.agentId === agent.agentId
      ? [{ assignment_id: row.assignmentId, envelope: row.envelope, traceparent: row.traceparent }]
      : [],
  );
}
