import type { Names } from '../../connectors/connector.ts';
import type { Approval } from '../../run/approval.ts';
import type { Trigger } from '../../run/run.ts';

const SYS_ID = /^[0-9a-f]{32}$/;
const NAME_MAX_CHARACTERS = 100;
/** For a user in `opened_by`, the columns of the payload with a name for people, best first. */
const NAME_COLUMNS = ['name', 'user_name'];

/**
 * Names for makers that are only known by the sys_id of a ServiceNow user, from the payload or from what was read for the
 * approval. They are shown beside the identity. Who may approve is decided by identities alone.
 */
export function makerNames(
  { source, payload }: Pick<Trigger, 'source' | 'payload'>,
  makers: readonly string[],
  names: Names = {},
): Record<string, string> | undefined {
  if (source !== 'servicenow') return undefined;
  const record = recordIn(payload);
  const read = Object.values(names).flatMap((each) => Object.entries(each));
  const columns = Object.entries(record).flatMap(([column, sysId]) =>
    NAME_COLUMNS.map((name) => [String(sysId), record[`${column}.${name}`]] as const),
  );
  const known = [...columns, ...read].filter(([id, name]) => SYS_ID.test(id) && isName(name)) as [string, string][];
  const found = makers.flatMap((maker) => {
    const named = known.find(([id]) => maker === `${source}:${id}`);
    return named ? [[maker, named[1].trim()]] : [];
  });
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

function recordIn(payload: unknown): Record<string, unknown> {
  const { record } = (payload ?? {}) as { record?: unknown };
  return typeof record === 'object' && record !== null ? (record as Record<string, unknown>) : {};
}

const isName = (name: unknown): boolean =>
  typeof name === 'string' && name.trim() !== '' && name.length <= NAME_MAX_CHARACTERS;

/** `Ana Ortiz (servicenow:10950f26c9e66c7eb5654253eb0bdeb6)`. */
export const makerText = ({ makerNames: names }: Pick<Approval, 'makerNames'>, maker: string): string =>
  names && Object.hasOwn(names, maker) ? `${names[maker]} (${maker})` : maker;
