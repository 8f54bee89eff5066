import { Problem } from '../../entry/http.ts';
import type { NoticeStore } from '../../notify/notice-store.ts';
import { endNoticeOf } from '../../notify/notify-run-end.ts';
import { may } from '../../people/rights.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Run } from '../../run/run.ts';
import { subscribeRun } from '../../run-changes/control/subscribe-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { subscriptionRoutes } from '../contract/runs/run-control.ts';
import type { Handlers } from '../router.ts';

export interface Subscriptions extends RunChanger {
  notices: Pick<NoticeStore, 'notices'>;
}

export const subscriptionHandlers: Handlers<Subscriptions, typeof subscriptionRoutes> = {
  async subscribeRun(ports, { caller, params: { id: runId }, body: { channel } }) {
    const { tenant, person, role, machine } = caller;
    if (channel !== undefined && !may(role, 'runs:control')) {
      throw new Problem(
        403,
        'FORBIDDEN',
        'only operators, admins and owners may notify a channel; leave out channel to get a direct message',
      );
    }
    if (channel === undefined && machine) {
      throw new Problem(422, 'INPUT_INVALID', 'a program gets no direct messages: name a channel');
    }
    const to =
      channel === undefined
        ? ({ type: 'slack_dm_user', person } as const)
        : ({ type: 'slack_channel', channel } as const);
    const run = await subscribeRun(ports, { tenant, runId }, to, person);
    return { status: 200, body: await view(ports, run) };
  },

  async listSubscriptions(ports, { caller: { tenant }, params: { id: runId } }) {
    const loaded = await ports.runs.load(tenant, runId);
    if (!loaded) throw new CountersignError('NOT_FOUND', `there is no run ${runId}`);
    return { status: 200, body: await view(ports, loaded.run) };
  },
};

async function view({ notices }: Subscriptions, run: Run) {
  const { tenant, runId, notify = [] } = run;
  const posted = new Map((await notices.notices(tenant, runId)).map((notice) => [notice.id, notice]));
  const subscriptions = notify.map((to) => {
    const { notifiedAt = null, skipped = null } = posted.get(endNoticeOf(run, to).id) ?? {};
    return { to, notifiedAt, skipped };
  });
  return { runId, subscriptions };
}
