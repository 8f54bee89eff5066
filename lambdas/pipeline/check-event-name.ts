import type { AutomationTrigger } from './automation.ts';
import githubEvents from './github-events.json' with { type: 'json' };

/** A trigger that waits for events. */
export type WebhookTrigger = Exclude<AutomationTrigger, { source: 'manual' }>;

/** What can happen to a ServiceNow record. */
export const SERVICENOW_OPERATIONS = ['insert', 'update', 'delete'] as const;

/** Event → its actions, separated by spaces. Generated from GitHub's OpenAPI description by `github-events.test.ts`. */
const GITHUB_EVENTS: Readonly<Record<string, string>> = githubEvents;
/** The sender of a repository_dispatch chooses its action. */
const ANY_ACTION = 'repository_dispatch';

/** Why this event can never arrive, and which events exist; undefined if it can arrive. */
export function checkEventName({ source, event }: WebhookTrigger): string | undefined {
  const [name = '', ...rest] = event.split('.');
  const action = rest.length > 0 ? rest.join('.') : undefined;
  // Whether a generic source exists is checked with the tenant's definitions.
  if (source === 'generic') return undefined;
  return source === 'github' ? checkGithubEvent(name, action) : checkServicenowEvent(name, action);
}

function checkGithubEvent(name: string, action: string | undefined): string | undefined {
  const actions = Object.hasOwn(GITHUB_EVENTS, name) ? GITHUB_EVENTS[name]?.split(' ').filter(Boolean) : undefined;
  if (!actions) return `"${name}" is not a GitHub event; write for example issues.opened, pull_request.closed or push`;
  if (action === undefined || actions.includes(action) || (name === ANY_ACTION && action !== '')) return undefined;
  if (actions.length === 0) return `"${name}.${action}" is not a GitHub event; ${name} has no actions: write ${name}`;
  return `"${name}.${action}" is not a GitHub event; ${name} has: ${actions.join(', ')}`;
}

/** The tables depend on the business rules of the instance; the operations do not. */
function checkServicenowEvent(table: string, operation: string | undefined): string | undefined {
  const isTable = /^[a-z0-9_]{1,80}$/.test(table);
  if (isTable && (operation === undefined || SERVICENOW_OPERATIONS.some((known) => known === operation))) {
    return undefined;
  }
  return `a ServiceNow event is a table and one of ${SERVICENOW_OPERATIONS.join(', ')}: incident.insert`;
}
