import * as z from 'zod';
import { Problem } from '../../entry/http.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { ClosedSessions } from '../../run-changes/session/closed-sessions.ts';
import { completeSession } from '../../run-changes/session/complete-session.ts';
import { noteHeartbeat } from '../../run-changes/session/note-heartbeat.ts';
import { sessionClosed } from '../../run-changes/session/open-session.ts';
import { type ActionProposer, proposeAction } from '../../run-changes/session/propose-action.ts';
import type { sessionRoutes } from '../contract/runs/actions.ts';
import type { Handlers } from '../router.ts';
import { requestIdOf } from '../start/idempotency-key.ts';
import { actionView } from './action-view.ts';
import { authenticateSession, type SessionAuthenticator } from './authenticate-session.ts';
import { mustLoadAction } from './list-actions.ts';

export interface SessionPorts extends RunChanger, ActionProposer, SessionAuthenticator {
  closedSessions: ClosedSessions;
}

/** What sessions do: they propose actions and read their outcome, send heartbeats and complete. */
export const sessionHandlers: Handlers<SessionPorts, typeof sessionRoutes> = {
  async proposeSessionAction(ports, { headers, params, body }) {
    const session = await authenticateSession(ports, headers, params.id);
    const key = requestIdOf(headers);
    if (key === undefined) {
      throw new Problem(
        400,
        'BAD_REQUEST',
        'send the header Idempotency-Key, so that a repeated request starts nothing',
      );
    }
    const { isNew, action } = await proposeAction(ports, session, { ...body, key });
    return { status: isNew ? 201 : 200, body: actionView(action) };
  },

  async getSessionAction(ports, { headers, params: { id, actionId } }) {
    const session = await authenticateSession(ports, headers, id);
    return { status: 200, body: actionView(await mustLoadAction(ports, session.tenant, actionId, session)) };
  },

  async completeSession(ports, { headers, params, body: { completion_id: completionId, ...completion } }) {
    const session = await authenticateSession(ports, headers, params.id);
    const { outcome, isRepeated } = await completeSession(ports, session, { completionId, ...completion });
    ports.closedSessions.add(session);
    return { status: 200, body: { outcome, repeated: isRepeated } };
  },

  async heartbeatSession(ports, { headers, params, body }) {
    const session = await authenticateSession(ports, headers, params.id);
    if (ports.closedSessions.has(session)) throw sessionClosed('its step has ended');
    return { status: 200, body: await noteHeartbeat(ports, session, { hasEnded: saysEnded(body) }) };
  },
};

const ENDED = /^TASK_STATE_(COMPLETED|FAILED|CANCELED|REJECTED)$/;
const Status = z.object({ state: z.string() });
/** A push notification of A2A 1.0 is a task, or a change of its status. */
const Notification = z.object({
  task: z.object({ status: Status }).optional(),
  statusUpdate: z.object({ status: Status }).optional(),
});

function saysEnded(body: unknown): boolean {
  const { task, statusUpdate } = Notification.safeParse(body).data ?? {};
  return ENDED.test((task ?? statusUpdate)?.status.state ?? '');
}
