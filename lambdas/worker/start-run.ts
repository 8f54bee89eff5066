import { type Person, personBehind } from '../people/people.ts';
import { enrich } from '../pipeline/enrich.ts';
import { triggerView } from '../pipeline/match-automations.ts';
import { startInputs } from '../pipeline/start-inputs.ts';
import { hashOf, sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, recordedError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { Enrichment, Run } from '../run/run.ts';
import type { By, RunDraft } from '../run/run-draft.ts';
import { automationCounter } from '../run/run-terms.ts';
import { flagsOfRun } from '../run/settings/flags.ts';
import { concludeRun } from '../run-changes/conclusion/conclude-run.ts';
import { SYSTEM } from '../run-changes/conclusion/next-status.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { render } from '../workflow/expressions/expressions.ts';
import { startReadySteps } from './2-start-ready-steps.ts';
import { resolveConfiguration } from './resolve-configuration.ts';
import type { Claims, Worker } from './worker.ts';

/** From `queued` to `running` in one commit: enrichment is local and deterministic. */
export async function startRun(worker: Worker, state: RunState, draft: RunDraft): Promise<Claims> {
  const { settings, workflow } = state;
  const starter = startedBy(state.run);
  draft.move('enriching', starter);
  try {
    await enrichRun(worker, state, draft);
    await chooseConfiguration(worker, state, draft);
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    draft.move('failed_terminal', SYSTEM, recordedError(error.code, error.message));
    return { claimed: [], ...(await concludeRun(worker.runs, state, draft)) };
  }
  const minute = draft.at.slice(0, 16);
  const ofTenant = settings.caps.maxRunsPerMinute;
  if (ofTenant !== undefined) draft.cap({ kind: 'count_start', minute, max: ofTenant });
  const ofWorkflow = workflow.caps?.maxRunsPerMinute;
  if (ofWorkflow !== undefined) draft.cap({ kind: 'count_start', minute, max: ofWorkflow, workflow: workflow.name });
  const ofAutomation = state.run.terms?.caps?.maxRunsPerMinute;
  if (ofAutomation !== undefined) {
    draft.cap({ kind: 'count_start', minute, max: ofAutomation, workflow: automationCounter(state.run.automation) });
  }
  draft.move('ready', starter).move('running', starter);
  return startReadySteps(worker, state, draft);
}

/** Records the choice before a session can start, also if no configuration could be chosen. */
async function chooseConfiguration(worker: Worker, { run, trigger }: RunState, draft: RunDraft): Promise<void> {
  const { configuration: strategy, model } = run.terms ?? {};
  const { enrichment } = draft.run;
  if (!strategy || !enrichment) return;
  const about = { run, trigger, enrichment };
  const event = await resolveConfiguration(worker, { tenant: run.tenant, strategy, model, about });
  draft.record(event);
  if (event.configuration === undefined) {
    throw new CountersignError('CONFIGURATION_UNRESOLVED', `configuration: ${event.reason}`);
  }
  draft.note({ configuration: event.configuration });
}

/** The event that started the run. Its author is payload text, which no commit stores; the author is a maker. */
function startedBy({ trigger: { source, event, key }, request }: Run): By {
  const externalEvent = { type: event, source, id: key };
  if (!request) return { initiator: 'webhook', actor: source, externalEvent };
  return { initiator: request.slot === undefined ? 'user' : 'system', actor: request.actor, externalEvent };
}

/** Names of people in other systems are text of their events, so an unknown person is present as a hash. */
function requesterOf(
  people: readonly Person[],
  { request, trigger: { source } }: Run,
  { actor }: Enrichment,
): Run['requester'] {
  const identity = request?.actor ?? (actor === undefined || actor.trim() === '' ? undefined : `${source}:${actor}`);
  if (identity === undefined || identity.startsWith('schedule:')) return undefined;
  const person = personBehind(people, identity);
  const isKnown = people.some(({ id }) => id === person);
  return isKnown ? { person } : { identityHash: sha256Hex(identity) };
}

async function enrichRun(
  { expressions, ids, definitions }: Pick<Worker, 'expressions' | 'ids' | 'definitions'>,
  { workflow, published, trigger, settings }: RunState,
  draft: RunDraft,
): Promise<void> {
  const { createdAt, tenant, runId, inputs: given, inputsFrom } = draft.run;
  const enrichment = enrich(trigger);
  if (workflow.deadlineSeconds !== undefined) {
    draft.note({ deadlineAt: later(createdAt, workflow.deadlineSeconds * 1000) });
  }
  const inputs = await startInputs({ expressions, tenant }, workflow, trigger, { given, from: inputsFrom });
  if (inputs) draft.note({ inputs, inputsFrom: undefined });
  const requester = requesterOf(await definitions.people(tenant), draft.run, enrichment);
  const flags = flagsOfRun(settings);
  draft
    .note({ enrichment, startedAt: draft.at, salt: ids.next('salt'), ...(requester && { requester }), flags })
    .record({
      type: 'run.enriched',
      enrichmentHash: hashOf(enrichment),
      ...(requester && { requester }),
      salted: true,
      ...(published && { workflowHash: hashOf(published) }),
      ...(inputs && { inputsHash: hashOf(inputs) }),
      flags,
    });
  if (workflow.concurrencyKey === undefined) return;
  const context = { trigger: triggerView(trigger), enrichment, inputs: inputs ?? {} };
  const text = await render({ expressions, tenant, context }, workflow.concurrencyKey);
  const key = sha256Hex(`${workflow.name}\n${JSON.stringify(text)}`);
  draft.note({ concurrencyKey: key }).cap({ kind: 'take_key', key, runId });
}
