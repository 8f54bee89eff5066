/** The distinct non-empty names among these values, trimmed. */
export const namesIn = (values: readonly unknown[]): string[] => [
  ...new Set(values.flatMap((value) => (typeof value === 'string' && value.trim() !== '' ? [value.trim()] : []))),
];

/** Objects of a GitHub payload that nobody wrote for this event. */
const NOT_WRITTEN = new Set(['repository', 'organization', 'installation', 'enterprise']);
/** GitHub's names for the maker: an issue's `user`, a release's `author`, a deployment's `creator`. */
const MAKER_FIELDS = ['user', 'author', 'creator', 'actor', 'triggering_actor', 'committer'];

/** The people who sent the event or wrote a part of it: an issue, a comment, a review, the commits of a push. */
export function githubMakers(payload: Record<string, unknown>): string[] {
  const written = Object.entries(payload).flatMap(([name, value]) => (NOT_WRITTEN.has(name) ? [] : [value].flat()));
  return namesIn([
    nameOf(payload.sender),
    field(payload.pusher, 'name'),
    ...written.flatMap((thing) => MAKER_FIELDS.map((role) => nameOf(field(thing, role)))),
  ]);
}

/** A user has a `login`, the author of a commit a `username`. Their `name` is free text, so it is not used. */
const nameOf = (user: unknown): unknown => field(user, 'login') ?? field(user, 'username');

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** Fields of a ServiceNow record with the user names of people, the last editor first. */
const RECORD_MAKERS = ['sys_updated_by', 'sys_created_by', 'opened_by.user_name', 'opened_by'];

/** The people who opened, created or last changed the record. */
export const servicenowMakers = (record: Record<string, string | null>): string[] =>
  namesIn(RECORD_MAKERS.map((name) => record[name]));
