import { Problem } from '../../entry/http.ts';
import type { RunStore } from '../../run/run-store.ts';

const WHOLE_ID = /^run_[0-9a-f]{32}$/;
const PREFIX = /^(?:run_)?([0-9a-f]{1,32})$/;
const CANDIDATES_MAX = 5;

/** The ports of a function with routes about one run. */
export interface RunFinder {
  runs: Pick<RunStore, 'runIdsStartingWith'>;
}

/** The paths whose `{id}` may be the first characters of a run id, with or without `run_`. */
export const RUN_PATH = '/api/v1/runs/{id}';

/** The id of the only run that starts so. A whole id is not looked up: the handler finds out whether the run exists. */
export async function resolveRunId({ runs }: RunFinder, tenant: string, reference: string): Promise<string> {
  if (WHOLE_ID.test(reference)) return reference;
  const digits = PREFIX.exec(reference)?.[1];
  const prefix = `run_${digits}`;
  const found = digits === undefined ? [] : await runs.runIdsStartingWith(tenant, prefix, CANDIDATES_MAX + 1);
  const [only, ...others] = found;
  if (only === undefined) throw new Problem(404, 'NOT_FOUND', `there is no run ${reference}`);
  if (others.length === 0 || only === prefix) return only;
  const more = found.length > CANDIDATES_MAX ? ' and others' : '';
  const candidates = `${found.slice(0, CANDIDATES_MAX).join(', ')}${more}`;
  throw new Problem(409, 'AMBIGUOUS', `several runs start with ${prefix}: ${candidates}; give more of the id`);
}
