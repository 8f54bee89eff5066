import type { Api } from '../../client/api-client.ts';
import { UsageError } from '../failure.ts';

const RUN_ID = /^run_[0-9a-f]{32}$/;
const PREFIX = /^(?:run_)?([0-9a-f]{1,32})$/;

/** A run id or its first characters, with or without `run_`. The API finds the run. */
export function runReference(text: string): string {
  const digits = PREFIX.exec(text)?.[1];
  if (digits) return `run_${digits}`;
  const bySubject = /^[A-Z]+\d+$|#\d+$/.test(text) ? ` --subject ${text}` : '';
  throw new UsageError(
    `"${text}" is not a run id; an id starts like run_3f9c2a, see npx countersign runs list${bySubject}`,
  );
}

/** For commands that need the whole id. */
export async function findRunId(api: Api, text: string): Promise<string> {
  const id = runReference(text);
  if (RUN_ID.test(id)) return id;
  return (await api.call('GET /api/v1/runs/{id}', { params: { id } })).runId;
}

const SHORT_DIGITS_MIN = 8;

/** The shortest prefixes, of at least 8 digits, that are unique among these runs. */
export function shortRunIds(runIds: readonly string[]): (runId: string) => string {
  let length = 'run_'.length + SHORT_DIGITS_MIN;
  while (new Set(runIds.map((runId) => runId.slice(0, length))).size < new Set(runIds).size) length += 1;
  return (runId) => runId.slice(0, length);
}
