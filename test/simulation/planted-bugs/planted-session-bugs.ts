import type { PlantedBug } from './planted-bugs.ts';

const SESSION_CONNECTOR = 'lambdas/connectors/session/session.ts';
const COMPLETE = 'lambdas/run-changes/session/complete-session.ts';
const ENDED = 'lambdas/run-changes/session/ended-sessions.ts';
const FINALIZE = 'lambdas/worker/session/finalize-session.ts';
const SESSIONS = 'session-completes,session-approved,session-lost,session-parallel';
const COMMAND_SESSIONS = 'command-session-completes,command-session-ends-early,command-session-silent';

/** Bugs of sessions and their actions. */
export const PLANTED_SESSION_BUGS: readonly PlantedBug[] = [
  {
    name: 'a session whose start has an unknown outcome is not searched for',
    edits: [
      {
        file: SESSION_CONNECTOR,
        find: 'const found = await a2aProvider.find(context.access, url, contract.sessionKey);',
        replace: 'const found = undefined as { sessionId: string } | undefined;',
      },
    ],
    violates: ['a step starts one session'],
    shapes: 'session-completes',
    faults: 'lost_reply',
  },
  {
    name: 'a repeated start of a session has another deadline',
    edits: [
      {
        file: 'lambdas/worker/session/session-contract.ts',
        find: "{ openSince }: ClaimedStep['receipt']): string =>",
        replace: "{ intentAt: openSince }: ClaimedStep['receipt']): string =>",
      },
    ],
    violates: ['a repeated start says the same', 'the recorded session is the one that was prompted'],
    shapes: 'session-completes',
    faults: 'lost_reply',
  },
  {
    name: 'a second completion with another content is confirmed',
    edits: [
      {
        file: COMPLETE,
        find: 'if (stored.hash === hashOfCompletion(completion)) return true;',
        replace: 'return true;',
      },
    ],
    violates: ['an accepted completion counts'],
    shapes: 'session-parallel',
    faults: 'crash_before',
  },
  {
    name: 'a completion with the id of another session is accepted',
    edits: [
      {
        file: COMPLETE,
        find: 'if (session && session.completionId !== completion.completionId) {',
        replace: "if (session && completion.completionId === '') {",
      },
    ],
    violates: ['only its own session completes a step'],
    shapes: 'none',
    seedShapes: SESSIONS,
  },
  {
    name: 'nobody asks the agent to end a session',
    edits: [{ file: ENDED, find: 'hasOpenSession(step)) return', replace: 'index >= 0) return' }],
    violates: ['a session is ended after its step'],
    shapes: 'session-completes',
    faults: 'crash_before',
  },
  {
    name: 'the session of a step that ends in the commit of its start is not ended',
    edits: [{ file: ENDED, find: '!(isNew || hasOpenSession(was))', replace: '!hasOpenSession(was)' }],
    violates: ['a session is ended after its step'],
    shapes: 'none',
    seedShapes: SESSIONS,
  },
  {
    name: 'a session is ended while it works',
    edits: [
      {
        file: ENDED,
        find: 'if (!(session?.at || session?.isCommand) || hasOpenSession(step)) return [];',
        replace: 'if (!session?.at) return [];',
      },
    ],
    violates: ['a session is ended only after its step'],
    shapes: 'session-completes',
    faults: 'crash_before',
  },
  {
    name: 'a session may propose any number of actions',
    edits: [
      {
        file: 'lambdas/run-changes/session/propose-action.ts',
        find: 'if (session.actions.length < session.actionsMax) return call;',
        replace: 'if (session.actionsMax > 0) return call;',
      },
    ],
    violates: ['a session proposes only as many actions as its step allows'],
    shapes: 'none',
    seedShapes: SESSIONS,
  },
  {
    name: 'a rollback forgets the start of a session',
    edits: [{ file: 'lambdas/worker/session/await-session.ts', find: '      receiptKey: receipt.key,\n', replace: '' }],
    violates: ['only injected faults cause errors', 'evidence shows that the rules were followed'],
    shapes: 'session-completes',
    faults: 'crash_before',
    seedShapes: SESSIONS,
  },
  {
    name: 'a canceled session stays open',
    edits: [
      {
        file: 'lambdas/run-changes/session/cancel-session.ts',
        find: 'fail(draft, open, error, { by, receiptKey });',
        replace: 'draft.put(open);',
      },
    ],
    violates: ['a session ends once: by its completion, by the finalizer or by a person'],
    shapes: 'canceled-session',
    faults: 'crash_before',
  },
  {
    name: 'nobody asks the agent to end a canceled session',
    edits: [
      {
        file: ENDED,
        find: 'const was = before.get(index);',
        replace:
          "const was = before.get(index); if (step.status === 'failed_terminal' && step.error.code === 'SESSION_CANCELED') return [];",
      },
    ],
    violates: ['a session is ended after its step'],
    shapes: 'canceled-session',
    faults: 'crash_before',
  },
  {
    name: 'the command of a canceled session goes on',
    edits: [{ file: ENDED, find: '!(session?.at || session?.isCommand)', replace: '!session?.at' }],
    violates: ['the command of a session is stopped with it'],
    shapes: 'command-session-canceled',
    faults: 'crash_before',
  },
  {
    name: 'the end of its command does not wake the run of a session',
    edits: [
      {
        file: 'lambdas/run-changes/commit-run.ts',
        find: 'sends.push(changer.queue.send({ tenant, runId: action.of.runId }));',
        replace: '',
      },
    ],
    violates: ['a session ends soon after its command'],
    shapes: 'command-session-ends-early',
    faults: 'crash_before',
  },
  {
    name: 'a session is given up while its command works',
    edits: [
      { file: FINALIZE, find: "(state === 'working' && !isDue)", replace: 'session.actionsMax < 0' },
      {
        file: FINALIZE,
        find: "state === 'working' ? 'silent' : state",
        replace: "state === 'working' ? 'dead' : state",
      },
    ],
    violates: ['a session is lost only after its command has ended'],
    shapes: 'command-session-completes',
    faults: 'lost_reply',
    seedShapes: COMMAND_SESSIONS,
  },
  {
    name: 'the input of a command differs from the signed one',
    edits: [
      {
        file: 'lambdas/worker/agent/acknowledge-assignment.ts',
        find: '{ ...ack, stdin };',
        replace: "{ ...ack, stdin: '{}' };",
      },
    ],
    violates: ['a command reads what its signed statement names'],
    shapes: 'command-session-completes',
    faults: 'crash_before',
  },
  {
    name: 'the token of a session is stored with its prompt',
    edits: [
      {
        file: 'lambdas/worker/session/await-session.ts',
        find: 'promptOf(step.input as SessionInput, contract)',
        replace: "promptOf(step.input as SessionInput, { ...contract, token: 'cst_stored' })",
      },
    ],
    violates: ['the token of a session is not stored'],
    shapes: 'command-session-completes',
    faults: 'crash_before',
  },
];
