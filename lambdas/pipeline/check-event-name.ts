import type { Automation } from './definitions.ts';

/** What can happen to a record of ServiceNow. */
export const SERVICENOW_OPERATIONS = ['insert', 'update', 'delete'] as const;

/** What GitHub says happened, and the actions it says of it; of an event without a list here, any action is taken. */
const GITHUB_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  check_run: ['completed', 'created', 'requested_action', 'rerequested'],
  check_suite: ['completed', 'requested', 'rerequested'],
  code_scanning_alert: [
    'appeared_in_branch',
    'closed_by_user',
    'created',
    'fixed',
    'reopened',
    'reopened_by_user',
    'updated_assignment',
  ],
  dependabot_alert: [
    'assignees_changed',
    'auto_dismissed',
    'auto_reopened',
    'created',
    'dismissed',
    'fixed',
    'reintroduced',
    'reopened',
  ],
  issue_comment: ['created', 'deleted', 'edited', 'pinned', 'unpinned'],
  issues: [
    'assigned',
    'closed',
    'deleted',
    'demilestoned',
    'edited',
    'field_added',
    'field_removed',
    'labeled',
    'locked',
    'milestoned',
    'opened',
    'pinned',
    'reopened',
    'transferred',
    'typed',
    'unassigned',
    'unlabeled',
    'unlocked',
    'unpinned',
    'untyped',
  ],
  pull_request: [
    'assigned',
    'auto_merge_disabled',
    'auto_merge_enabled',
    'closed',
    'converted_to_draft',
    'demilestoned',
    'dequeued',
    'edited',
    'enqueued',
    'labeled',
    'locked',
    'milestoned',
    'opened',
    'ready_for_review',
    'reopened',
    'review_request_removed',
    'review_requested',
    'synchronize',
    'unassigned',
    'unlabeled',
    'unlocked',
  ],
  pull_request_review: ['dismissed', 'edited', 'submitted'],
  pull_request_review_comment: ['created', 'deleted', 'edited'],
  pull_request_review_thread: ['resolved', 'unresolved'],
  release: ['created', 'deleted', 'edited', 'prereleased', 'published', 'released', 'unpublished'],
  secret_scanning_alert: ['assigned', 'created', 'publicly_leaked', 'reopened', 'resolved', 'unassigned', 'validated'],
  workflow_job: ['completed', 'in_progress', 'queued', 'waiting'],
  workflow_run: ['completed', 'in_progress', 'requested'],
};

const OTHER_GITHUB_EVENTS: readonly string[] = [
  'branch_protection_configuration',
  'branch_protection_rule',
  'commit_comment',
  'create',
  'custom_property',
  'custom_property_values',
  'delete',
  'deploy_key',
  'deployment',
  'deployment_protection_rule',
  'deployment_review',
  'deployment_status',
  'discussion',
  'discussion_comment',
  'fork',
  'github_app_authorization',
  'gollum',
  'installation',
  'installation_repositories',
  'installation_target',
  'issue_dependencies',
  'label',
  'marketplace_purchase',
  'member',
  'membership',
  'merge_group',
  'meta',
  'milestone',
  'org_block',
  'organization',
  'package',
  'page_build',
  'personal_access_token_request',
  'ping',
  'project',
  'project_card',
  'project_column',
  'projects_v2',
  'projects_v2_item',
  'projects_v2_status_update',
  'public',
  'push',
  'registry_package',
  'repository',
  'repository_advisory',
  'repository_dispatch',
  'repository_import',
  'repository_ruleset',
  'repository_vulnerability_alert',
  'secret_scanning_alert_location',
  'secret_scanning_scan',
  'security_advisory',
  'security_and_analysis',
  'sponsorship',
  'star',
  'status',
  'sub_issues',
  'team',
  'team_add',
  'watch',
  'workflow_dispatch',
];

/** Why no such event will ever come, and what there is instead; nothing if it may. */
export function unknownEvent({ source, event }: Pick<Automation['trigger'], 'source' | 'event'>): string | undefined {
  const [name = '', ...rest] = event.split('.');
  const action = rest.length > 0 ? rest.join('.') : undefined;
  return source === 'github' ? unknownOfGitHub(name, action) : unknownOfServiceNow(name, action);
}

function unknownOfGitHub(name: string, action: string | undefined): string | undefined {
  const actions = Object.hasOwn(GITHUB_ACTIONS, name) ? GITHUB_ACTIONS[name] : undefined;
  if (actions) {
    if (action === undefined || actions.includes(action)) return undefined;
    return `GitHub sends no "${name}.${action}"; of ${name} there are ${actions.join(', ')}`;
  }
  if (OTHER_GITHUB_EVENTS.includes(name) && action !== '') return undefined;
  return `GitHub sends no event "${name}"; it looks like issues.opened, pull_request.closed or push`;
}

/** Which tables an instance sends is up to its business rules; what can happen to a record is not. */
function unknownOfServiceNow(table: string, operation: string | undefined): string | undefined {
  const isTable = /^[a-z0-9_]{1,80}$/.test(table);
  if (isTable && (operation === undefined || SERVICENOW_OPERATIONS.some((known) => known === operation))) {
    return undefined;
  }
  return `an event of ServiceNow is a table and one of ${SERVICENOW_OPERATIONS.join(', ')}: incident.insert`;
}
