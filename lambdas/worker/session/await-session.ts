import { runCommand } from '../../connectors/agent/command.ts';
import { promptOf } from '../../connectors/session/session.ts';
import type { SessionInput } from '../../connectors/session/session-input.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { earlier, later } from '../../run/lease.ts';
import type { WriteResult } from '../../run/receipt.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import { SESSION_SILENT_MS, type SessionFacts } from '../../run/session.ts';
import { factsOf } from '../../run/step.ts';
import type { RunState } from '../../run-changes/run-changer.ts';
import { actionRun } from '../../run-changes/session/propose-action.ts';
import type { ClaimedStep, Worker } from '../worker.ts';
import { completionIdOf, sessionUntil } from './session-contract.ts';

/** The session was started and prompted: the step waits for its completion. */
export function awaitSession(
  { ownUrl = '' }: Pick<Worker, 'ownUrl'>,
  state: RunState,
  draft: RunDraft,
  { step, receipt }: ClaimedStep,
  { output }: WriteResult,
): void {
  const { sessionId } = output as { sessionId: string };
  const { configuration = '', actions, maxActions, resolved } = step.input as SessionInput;
  const until = sessionUntil(step, receipt);
  const session: SessionFacts = {
    configuration,
    sessionId,
    completionId: completionIdOf(draft.run.runId, step.id, until),
    startedAt: receipt.openSince,
    seenAt: draft.at,
    actionsAllowed: actions,
    actionsMax: maxActions,
    actions: [],
    refused: 0,
    ...(resolved && 'url' in resolved && { at: { url: resolved.url, connection: resolved.connection } }),
    ...(resolved && 'command' in resolved && { isCommand: true as const }),
  };
  if (resolved && 'command' in resolved) {
    // One commit: the session is recorded, and its command exists. It is decided on like any command, as a run of its own.
    const contract = { runId: draft.run.runId, completionId: session.completionId, until, ownUrl };
    const prompt = promptOf(step.input as SessionInput, contract);
    const call = { tool: runCommand.tool, input: resolved.command, chosen: [] };
    const starts = { stepIndex: step.index, until, prompt };
    const of = { id: step.id, index: step.index, session };
    draft.create(actionRun({ ...state, run: draft.run }, of, sessionId, { ...call, session: starts }, draft.at));
  }
  const lookAt = earlier(until, later(draft.at, SESSION_SILENT_MS));
  const { id, index } = step;
  draft
    .put({
      ...factsOf(step, draft.at),
      session,
      receiptKey: receipt.key,
      status: 'waiting_external',
      awaits: { kind: 'session', until, lookAt },
    })
    .record({
      type: 'session.started',
      ...{ step: id, index, configuration, until },
      sessionHash: sha256Hex(sessionId),
      completionId: session.completionId,
    });
}
