import { Problem } from '../../entry/http.ts';
import type { LoadedRun, Page, RunStore } from '../../run/run-store.ts';
import type { Action } from '../contract/runs/actions.ts';
import { pageOf } from '../paging.ts';
import { cutToFit } from '../response-size.ts';
import { actionView } from './action-view.ts';

type Reads = { runs: Pick<RunStore, 'load'> };

/** The actions of all sessions of a run. The rows of their steps have the ids. */
export async function actionsOfRun(
  ports: Reads,
  { run, steps }: LoadedRun,
  place: { after?: string; limit: number },
): Promise<Page<Action>> {
  const ids = steps.flatMap(({ session }) => session?.actions ?? []);
  const placed = ids.map((id, index) => ({ id, place: String(index).padStart(6, '0') }));
  const { items, next } = await pageOf(placed, place, (each) => each.place);
  const found = await Promise.all(
    items.map(async ({ id, place: at }) => ({ at, loaded: await ports.runs.load(run.tenant, id) })),
  );
  const views = found.flatMap(({ at, loaded }) => (loaded ? [{ at, action: actionView(loaded) }] : []));
  const fitting = cutToFit({ items: views, ...(next !== undefined && { next }) }, ({ at }) => at);
  return { ...fitting, items: fitting.items.map(({ action }) => action) };
}

/** The response is the same for an action of another tenant or session and for one that does not exist. */
export async function mustLoadAction(
  ports: Reads,
  tenant: string,
  actionId: string,
  of?: { runId: string },
): Promise<LoadedRun> {
  const loaded = await ports.runs.load(tenant, actionId);
  const action = loaded?.run.request?.action;
  if (!loaded || !action || (of && action.of?.runId !== of.runId)) {
    throw new Problem(404, 'NOT_FOUND', `there is no action ${actionId}`);
  }
  return loaded;
}
