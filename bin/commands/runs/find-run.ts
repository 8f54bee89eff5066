import type { Api } from '../../client/api-client.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';

const RUN_ID = /^run_[0-9a-f]{32}$/;
const PREFIX = /^(?:run_)?([0-9a-f]{1,32})$/;

/** A prefix is searched among the newest runs: one page of the API. */
const NEWEST_MAX = 100;
const AMBIGUOUS_SHOWN_MAX = 5;

/** Accepts a prefix of the id, with or without `run_`. */
export async function findRunId(api: Api, reference: string): Promise<string> {
  if (RUN_ID.test(reference)) return reference;
  const digits = PREFIX.exec(reference)?.[1];
  if (!digits)
    throw new UsageError(`"${reference}" is not a run id; an id starts like run_3f9c2a, see npx countersign runs list`);
  const { runs } = await api.call('GET /api/v1/runs', { query: { limit: NEWEST_MAX } });
  const matching = runs.map(({ runId }) => runId).filter((runId) => runId.startsWith(`run_${digits}`));
  const [only, ...others] = matching;
  if (!only) {
    throw new Failure(
      EXIT.failed,
      `none of the newest ${NEWEST_MAX} runs starts with run_${digits}; for an older run, give the whole id`,
    );
  }
  if (others.length > 0) {
    const shown = matching.slice(0, AMBIGUOUS_SHOWN_MAX).join(', ');
    throw new Failure(EXIT.usage, `${matching.length} runs start with run_${digits}: ${shown}; give more of the id`);
  }
  return only;
}

const SHORT_DIGITS_MIN = 8;

/** The shortest prefixes, of at least 8 digits, that are unique among these runs. */
export function shortRunIds(runIds: readonly string[]): (runId: string) => string {
  let length = 'run_'.length + SHORT_DIGITS_MIN;
  while (new Set(runIds.map((runId) => runId.slice(0, length))).size < new Set(runIds).size) length += 1;
  return (runId) => runId.slice(0, length);
}
