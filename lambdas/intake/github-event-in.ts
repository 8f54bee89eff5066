/** GitHub sends the event in a header, which a file with a payload does not have. Undefined if the payload does not show it. */
export const githubEventIn = (payload: unknown): string | undefined =>
  EVENTS.find(([member]) => Object.hasOwn(Object(payload), member))?.[1];

const EVENTS = [
  ['pull_request', 'pull_request'],
  ['discussion', 'discussion'],
  ['issue', 'issues'],
] as const;
