import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Run } from '../../run/run.ts';
import type { Destination } from '../../run/run-terms.ts';
import { changeRun } from '../change-run.ts';
import type { RunChanger } from '../run-changer.ts';

const DESTINATIONS_MAX = 50;

/**
 * Notifies a destination of the end of a run. The commit that ends the run sees every subscription, because both change
 * the run. Subscribing again changes nothing.
 */
export async function subscribeRun(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  to: Destination,
  actor: string,
): Promise<Run> {
  const { run } = await changeRun(changer, target, async ({ run: { notify = [] } }, draft) => {
    if (notify.some((each) => hashOf(each) === hashOf(to))) return undefined;
    if (notify.length >= DESTINATIONS_MAX) {
      throw new CountersignError('CAP_EXCEEDED', `${DESTINATIONS_MAX} destinations are notified of this run already`);
    }
    const { type, ...named } = to;
    draft.note({ notify: [...notify, to] }).record({ type: 'run.subscribed', actor, to: type, ...named });
    return {};
  });
  return run;
}
