import type { Agent } from '../agents/agent.ts';
import { type AgentRegistry, allAgents } from '../agents/agent-registry.ts';
import { builtInProfile, type ProfileDefinition, profileViolation } from '../agents/profiles.ts';
import { type CommandNeeds, whyUnsuitable } from '../agents/select-agent.ts';
import { type AssignedCommand, assignedCommand } from '../connectors/agent/command.ts';
import { findOperation } from '../connectors/registry.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { isAgentTool } from '../run/lease.ts';

/** A step with its input, as far as it is known. */
interface Step {
  id: string;
  tool: string;
  input: unknown;
}

interface Reader {
  definitions: Pick<Definitions, 'profiles'>;
  agents: Pick<AgentRegistry, 'agents'>;
}

/**
 * The commands that no profile allows, or that no registered agent could run. Only warnings: lists and agents change, and
 * the worker checks both again. Inputs with values that are not known yet are not checked.
 */
export async function commandWarnings(reader: Reader, tenant: string, steps: readonly Step[]): Promise<string[]> {
  const commands = steps.flatMap((step) => {
    const command = isAgentTool(step.tool) ? knownCommand(step) : undefined;
    return command ? [{ id: step.id, command }] : [];
  });
  if (commands.length === 0) return [];
  const profiles = await reader.definitions.profiles(tenant);
  const agents = await allAgents(reader.agents, tenant);
  return commands.flatMap(({ id, command }) => [
    ...listWarnings(id, command, profiles),
    ...agentWarnings(id, command, agents),
  ]);
}

function knownCommand({ tool, input }: Step): AssignedCommand | undefined {
  if (JSON.stringify(input ?? null).includes('{%')) return undefined;
  try {
    const parsed = findOperation(tool)?.parse(input);
    return parsed === undefined ? undefined : assignedCommand(parsed);
  } catch {
    // Publishing reports what is wrong with an input; a plan, what a run could not do with it.
    return undefined;
  }
}

function listWarnings(id: string, command: AssignedCommand, profiles: readonly ProfileDefinition[]): string[] {
  const lists = profiles.find(({ name }) => name === command.profile) ?? builtInProfile(command.profile);
  const own = profileViolation(lists, command.command);
  const undo = command.rollback && profileViolation(lists, command.rollback);
  const set = `extend the lists of ${command.profile}: countersign agents set-profile FILE`;
  return [
    ...(own ? [`step ${id}: it would be refused, ${own.message}; ${set}`] : []),
    ...(undo ? [`step ${id}: its rollback would be refused, ${undo.message}; ${set}`] : []),
  ];
}

const NAMED_MAX = 3;

function agentWarnings(id: string, needs: CommandNeeds, agents: readonly Agent[]): string[] {
  if (agents.length === 0) {
    return [`step ${id}: no agent is enrolled; enrol one: countersign agents token NAME --environment ENV`];
  }
  const reasons = agents.map((agent) => ({ name: agent.name, why: whyUnsuitable(agent, needs) }));
  if (reasons.some(({ why }) => why === undefined)) return [];
  const each = reasons.slice(0, NAMED_MAX).map(({ name, why }) => `${name} ${why}`);
  const more = reasons.length > NAMED_MAX ? [`${reasons.length - NAMED_MAX} more`] : [];
  return [`step ${id}: no agent could run it: ${[...each, ...more].join('; ')}`];
}
