/** The names there are among these values: a missing, empty or padded one hides no other. */
export const namesIn = (values: readonly unknown[]): string[] => [
  ...new Set(values.flatMap((value) => (typeof value === 'string' && value.trim() !== '' ? [value.trim()] : []))),
];

/** Objects of a GitHub payload that no person wrote for this event. */
const NOT_WRITTEN = new Set(['repository', 'organization', 'installation', 'enterprise']);
/** Under these names GitHub shows who made a thing: an issue's `user`, a release's `author`, a deployment's `creator`. */
const MADE_BY = ['user', 'author', 'creator', 'actor', 'triggering_actor', 'committer'];

/** Whoever sent the event or wrote something in it: an issue, a comment, a review, the commits of a push. */
export function githubMakers(payload: Record<string, unknown>): string[] {
  const written = Object.entries(payload).flatMap(([name, value]) => (NOT_WRITTEN.has(name) ? [] : [value].flat()));
  return namesIn([
    nameOf(payload.sender),
    field(payload.pusher, 'name'),
    ...written.flatMap((thing) => MADE_BY.map((role) => nameOf(field(thing, role)))),
  ]);
}

/** A user has a `login`, the author of a commit a `username`; the `name` of either is whatever they call themselves. */
const nameOf = (user: unknown): unknown => field(user, 'login') ?? field(user, 'username');

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** Fields of a ServiceNow record that name people by their user names, the last editor first. */
const RECORD_MAKERS = ['sys_updated_by', 'sys_created_by', 'opened_by.user_name', 'opened_by'];

/** Whoever opened, created or last changed the record. */
export const servicenowMakers = (record: Record<string, string | null>): string[] =>
  namesIn(RECORD_MAKERS.map((name) => record[name]));
