import { type Agent, type CommandEnvironment, freeSlots, heldAt, isOffline } from './agent.ts';
import type { ProfileName } from './agent-terms.ts';

/** An agent that had a problem, or was silent, gets no new commands for this long (source 001, 7.1). */
const SKIPPED_AFTER_PROBLEM_MS = 60_000;

/** `worker_requirements` of source 001, 3.3. */
export interface CommandNeeds {
  environment: CommandEnvironment;
  profile: ProfileName;
  capabilities: readonly string[];
  /** Absent: an agent of any segment. */
  segment?: string;
}

/** Why an agent could never run a command, as it is registered now; undefined if it could. */
export function whyUnsuitable(agent: Agent, needs: CommandNeeds): string | undefined {
  const { registration } = agent;
  if (!registration) return 'is not registered';
  if (!agent.environments.includes(needs.environment) || !registration.environments.includes(needs.environment)) {
    return `does not work in ${needs.environment}`;
  }
  if (needs.segment !== undefined && agent.networkSegment !== needs.segment) {
    return `is not in the network segment ${needs.segment}`;
  }
  if (!registration.profiles.includes(needs.profile)) return `does not provide the profile ${needs.profile}`;
  const missing = needs.capabilities.filter((each) => !registration.capabilities.includes(each));
  return missing.length > 0 ? `does not have ${missing.join(', ')}` : undefined;
}

/** Why an agent cannot get a command now; undefined if it can. */
export function whyUnavailable(agent: Agent, needs: CommandNeeds, at: string): string | undefined {
  const unsuitable = whyUnsuitable(agent, needs);
  if (unsuitable !== undefined) return unsuitable;
  const lately = (time: string | undefined) =>
    time !== undefined && Date.parse(at) - Date.parse(time) < SKIPPED_AFTER_PROBLEM_MS;
  if (isOffline(agent, at)) return 'is offline';
  if (agent.errored || lately(agent.erroredAt)) return 'had a problem in the last minute';
  if (lately(agent.backOnlineAt)) return 'was offline in the last minute';
  if (agent.draining) return 'is draining';
  return freeSlots(agent, at) > 0 ? undefined : 'has no free slot';
}

/**
 * The agent for a command: available, preferably one that was not tried for this step, then with the least load. `random`
 * decides between equals, so that they share the work.
 */
export function selectAgent(
  agents: readonly Agent[],
  needs: CommandNeeds,
  { at, tried, random }: { at: string; tried: readonly string[]; random: () => number },
): Agent | undefined {
  const available = agents.filter((agent) => whyUnavailable(agent, needs, at) === undefined);
  const ranked = available.map((agent) => ({ agent, rank: rankOf(agent, { at, tried }), tie: random() }));
  ranked.sort((a, b) => byRank(a.rank, b.rank) || a.tie - b.tie);
  return ranked[0]?.agent;
}

/** The lower, the better. */
interface Rank {
  tried: number;
  load: number;
}

export const rankOf = (agent: Agent, { at, tried }: { at: string; tried: readonly string[] }): Rank => ({
  tried: tried.includes(agent.agentId) ? 1 : 0,
  load: heldAt(agent, at).length / (agent.registration?.slots ?? 1),
});
export const byRank = (a: Rank, b: Rank): number => a.tried - b.tried || a.load - b.load;
/** No agent is preferred to it. */
export const isBest = ({ tried, load }: Rank): boolean => tried === 0 && load === 0;

/** Why no agent is available, for the error of the step: the reasons with how many agents have each. */
export function whyNobody(agents: readonly Agent[], needs: CommandNeeds, at: string): string {
  if (agents.length === 0) return 'no agent is enrolled; enrol one: countersign agents token NAME --environment ENV';
  const reasons = new Map<string, string[]>();
  for (const agent of agents) {
    const why = whyUnavailable(agent, needs, at) ?? 'is available';
    reasons.set(why, [...(reasons.get(why) ?? []), agent.name]);
  }
  const each = [...reasons].map(([why, names]) =>
    names.length > NAMED_MAX ? `${names.length} agents: each ${why}` : `${names.join(', ')} ${why}`,
  );
  return each.join('; ');
}
const NAMED_MAX = 3;
