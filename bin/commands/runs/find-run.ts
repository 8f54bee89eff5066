import type { Api } from '../../client/api-client.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';

const RUN_ID = /^run_[0-9a-f]{32}$/;
const PREFIX = /^(?:run_)?([0-9a-f]{1,32})$/;

/** A beginning of an id is looked for among this many, the most the API gives in one page. */
const NEWEST_MAX = 100;
const AMBIGUOUS_SHOWN_MAX = 5;

/** Ids are random, so that a few digits name a run; `run_` may be left out. */
export async function findRunId(api: Api, reference: string): Promise<string> {
  if (RUN_ID.test(reference)) return reference;
  const digits = PREFIX.exec(reference)?.[1];
  if (!digits)
    throw new UsageError(`"${reference}" is not a run id; they look like run_3f9c2a, see npx countersign runs list`);
  const { runs } = await api.runs({ limit: String(NEWEST_MAX) });
  const matching = runs.map(({ runId }) => runId).filter((runId) => runId.startsWith(`run_${digits}`));
  const [only, ...others] = matching;
  if (!only) {
    throw new Failure(
      EXIT.failed,
      `none of the newest ${NEWEST_MAX} runs begins with run_${digits}; give the whole id`,
    );
  }
  if (others.length > 0) {
    const shown = matching.slice(0, AMBIGUOUS_SHOWN_MAX).join(', ');
    throw new Failure(EXIT.usage, `${matching.length} runs begin with run_${digits}: ${shown}; give more of the id`);
  }
  return only;
}

const SHORT_DIGITS_MIN = 8;

/** The shortest form that still tells these runs apart, for people to read and type. */
export function shortRunIds(runIds: readonly string[]): (runId: string) => string {
  let length = 'run_'.length + SHORT_DIGITS_MIN;
  while (new Set(runIds.map((runId) => runId.slice(0, length))).size < new Set(runIds).size) length += 1;
  return (runId) => runId.slice(0, length);
}
