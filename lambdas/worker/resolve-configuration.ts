import * as z from 'zod';
import { BEDROCK } from '../connectors/connections.ts';
import { DEFAULT_MODEL, invokeModel } from '../connectors/model/invoke.ts';
import type { StoredConfiguration } from '../pipeline/configuration.ts';
import { CountersignError } from '../run/errors.ts';
import type { EventOf } from '../run/events/events.ts';
import type { Enrichment, Run, Trigger } from '../run/run.ts';
import type { ConfigurationStrategy } from '../run/run-terms.ts';
import type { Worker } from './worker.ts';

export type Resolver = Pick<Worker, 'connections' | 'log'> & {
  definitions: Pick<Worker['definitions'], 'configuration'>;
};

type TargetResolved = EventOf<'run.target_resolved'>;
type AgentDecide = Extract<ConfigurationStrategy, { strategy: 'agent_decide' }>;

interface Asked {
  tenant: string;
  strategy: ConfigurationStrategy;
  model?: string;
  about: { run: Pick<Run, 'subject'>; trigger: Pick<Trigger, 'source' | 'event'>; enrichment: Enrichment };
}

/**
 * Chooses the configuration for the sessions of a run. The event names it, and says why if no model picked it. Without
 * `configuration` the run cannot continue. Configurations are only read here, never created.
 */
export async function resolveConfiguration(resolver: Resolver, asked: Asked): Promise<TargetResolved> {
  const { strategy, tenant } = asked;
  const exists = async (name: string | undefined) =>
    name !== undefined && (await resolver.definitions.configuration(tenant, name)) !== undefined;
  if (strategy.strategy === 'fixed') {
    const found = await exists(strategy.default);
    return found ? resolved('fixed', strategy.default, 'default') : unresolved('fixed', missing(strategy.default));
  }
  if (strategy.allow.length === 0) return unresolved('agent_decide', 'the allow-list of the automation is empty');
  const picked = await pick(resolver, asked, strategy);
  if ('configuration' in picked) return resolved('agent_decide', picked.configuration, 'model', picked);
  const { fallback, default: preset } = strategy;
  const why = { model: picked.model, reason: picked.reason };
  if (fallback !== undefined && (await exists(fallback))) return resolved('agent_decide', fallback, 'fallback', why);
  if (preset !== undefined && (await exists(preset))) return resolved('agent_decide', preset, 'default', why);
  const named = [fallback, preset].flatMap((name) => name ?? []);
  const instead = named.length > 0 ? named.map(missing).join('; ') : 'the automation has no fallback and no default';
  return { ...unresolved('agent_decide', `${picked.reason}; ${instead}`), ...modelOf(picked) };
}

const missing = (name: string) => `there is no configuration ${name}`;
const modelOf = ({ model }: { model?: string }) => (model === undefined ? {} : { model });

const resolved = (
  strategy: TargetResolved['strategy'],
  configuration: string,
  via: NonNullable<TargetResolved['via']>,
  why: { model?: string; reason?: string } = {},
): TargetResolved => ({
  type: 'run.target_resolved',
  strategy,
  configuration,
  via,
  ...modelOf(why),
  ...(why.reason !== undefined && { reason: why.reason }),
});

const unresolved = (strategy: TargetResolved['strategy'], reason: string): TargetResolved => ({
  type: 'run.target_resolved',
  strategy,
  reason,
});

type Picked = { model?: string } & ({ configuration: string } | { reason: string });

/** Asks the model. Everything but the name of an eligible configuration is a reason to use the fallback. */
async function pick(resolver: Resolver, asked: Asked, { allow }: AgentDecide): Promise<Picked> {
  const { tenant, model = DEFAULT_MODEL } = asked;
  const found = await Promise.all(allow.map((name) => resolver.definitions.configuration(tenant, name)));
  const eligible = found.flatMap((each) => (each?.routing === undefined ? [] : [each]));
  if (eligible.length === 0) return { reason: 'no configuration of the allow-list has a routing description' };
  try {
    const access = await resolver.connections.open(tenant, BEDROCK);
    const question = invokeModel.parse(questionFor(asked, eligible, model));
    const { output } = await invokeModel.perform(question, { access, mark: '', openSince: '' });
    const named = z.object({ configuration: z.string() }).safeParse(output).data?.configuration;
    if (named !== undefined && eligible.some(({ name }) => name === named)) return { configuration: named, model };
    return { reason: 'the answer of the model names no eligible configuration', model };
  } catch (error) {
    resolver.log.warn('the model did not pick a configuration', { tenant, model, error });
    const why = error instanceof CountersignError ? `: ${error.message}` : '';
    return { reason: `the model did not answer${why}`, model };
  }
}

/** The event is data, not instructions. The answer of the model can only select from the list. */
function questionFor({ about }: Asked, eligible: readonly StoredConfiguration[], model: string) {
  const { run, trigger, enrichment } = about;
  const { title, severity, actor } = enrichment;
  const choices = eligible.map(({ name, routing }) => `- ${name}: ${routing}`).join('\n');
  return {
    model,
    prompt:
      'Choose the configuration that fits the event best. Answer with {"configuration": "<name>"}, where <name> is one ' +
      `of these names:\n${choices}`,
    input: {
      ...{ source: trigger.source, event: trigger.event, title, severity: severity ?? null },
      ...{ actor: actor ?? null, subject: run.subject ?? null },
    },
    maxTokens: 200,
    temperature: 0,
    json: true,
  };
}
