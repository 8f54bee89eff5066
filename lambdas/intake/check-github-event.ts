import { Problem } from '../entry/http.ts';

/**
 * GitHub signs the body but not the header `X-GitHub-Event`, so a signed body could be sent again as another event.
 * Each event has required members (with a dot: a nested member) and optional members. A body with any other member of
 * this table belongs to another event.
 *
 * GitHub's OpenAPI description cannot replace this table: it marks members as required that real deliveries lack
 * (`workflow` of a deployment, `requester` of installation_repositories), and several events have the same members.
 * `check-github-event.test.ts` checks the table with every payload that GitHub publishes.
 */
interface Members {
  has: readonly string[];
  may?: readonly string[];
  /** Only for events without a member of their own. */
  without?: readonly string[];
  actions?: readonly string[];
}

const REPOSITORY_ACTIONS = [
  'archived',
  'created',
  'deleted',
  'edited',
  'privatized',
  'publicized',
  'renamed',
  'transferred',
  'unarchived',
];

const EVENTS: Readonly<Record<string, Members>> = {
  branch_protection_configuration: { has: ['action', 'repository'], actions: ['disabled', 'enabled'] },
  branch_protection_rule: { has: ['action', 'rule'] },
  check_run: { has: ['action', 'check_run'] },
  check_suite: { has: ['action', 'check_suite'] },
  code_scanning_alert: { has: ['action', 'alert.rule', 'commit_oid'], may: ['ref'] },
  commit_comment: { has: ['action', 'comment.commit_id'] },
  content_reference: { has: ['action', 'content_reference'] },
  create: { has: ['ref', 'ref_type', 'master_branch'] },
  custom_property: { has: ['action', 'definition'] },
  custom_property_values: { has: ['action', 'new_property_values'] },
  delete: { has: ['ref', 'ref_type'] },
  dependabot_alert: { has: ['action', 'alert.security_advisory'] },
  deploy_key: { has: ['action', 'key'] },
  deployment: { has: ['deployment'], may: ['action', 'workflow', 'workflow_run'] },
  deployment_protection_rule: {
    has: ['action'],
    may: [
      'deployment',
      'deployment_callback_url',
      'environment',
      'event',
      'pull_requests',
      'ref',
      'sha',
      'workflow_run',
    ],
    actions: ['requested'],
  },
  deployment_review: {
    has: ['action', 'workflow_run', 'since'],
    may: ['reviewers', 'workflow_job_run', 'workflow_job_runs', 'environment', 'approver', 'comment', 'requestor'],
  },
  deployment_status: {
    has: ['deployment', 'deployment_status'],
    may: ['action', 'check_run', 'workflow', 'workflow_run'],
  },
  discussion: { has: ['action', 'discussion'], may: ['label', 'answer', 'old_answer'] },
  discussion_comment: { has: ['action', 'discussion', 'comment'] },
  fork: { has: ['forkee'] },
  github_app_authorization: { has: ['action'], actions: ['revoked'] },
  gollum: { has: ['pages'] },
  installation: { has: ['action', 'installation.account'], may: ['repositories', 'requester'] },
  installation_repositories: {
    has: ['action', 'installation.account', 'repositories_added', 'repositories_removed'],
    may: ['requester'],
  },
  installation_target: { has: ['action', 'target_type', 'account'] },
  issue_comment: { has: ['action', 'issue', 'comment'] },
  issue_dependencies: { has: ['action', 'blocked_issue', 'blocking_issue'] },
  issues: { has: ['action', 'issue'], may: ['label', 'milestone'] },
  label: { has: ['action', 'label'] },
  marketplace_purchase: { has: ['action', 'marketplace_purchase'], may: ['effective_date'] },
  member: { has: ['action', 'member'] },
  membership: { has: ['action', 'member', 'team', 'scope'] },
  merge_group: { has: ['action', 'merge_group'] },
  meta: { has: ['action', 'hook'] },
  milestone: { has: ['action', 'milestone'] },
  org_block: { has: ['action', 'blocked_user'] },
  organization: {
    has: ['action', 'organization'],
    may: ['membership', 'invitation'],
    without: ['repository'],
    actions: ['deleted', 'member_added', 'member_invited', 'member_removed', 'renamed'],
  },
  package: { has: ['action', 'package'] },
  page_build: { has: ['build'] },
  personal_access_token_request: { has: ['action', 'personal_access_token_request'] },
  ping: { has: ['zen', 'hook'] },
  project: { has: ['action', 'project'] },
  project_card: { has: ['action', 'project_card'] },
  project_column: { has: ['action', 'project_column'] },
  projects_v2: { has: ['action', 'projects_v2'] },
  projects_v2_item: { has: ['action', 'projects_v2_item'] },
  projects_v2_status_update: { has: ['action', 'projects_v2_status_update'] },
  public: { has: ['repository'] },
  pull_request: { has: ['action', 'pull_request', 'number'], may: ['label', 'milestone', 'before', 'after'] },
  pull_request_review: { has: ['action', 'pull_request', 'review'] },
  pull_request_review_comment: { has: ['action', 'pull_request', 'comment'] },
  pull_request_review_thread: { has: ['action', 'pull_request', 'thread'] },
  push: { has: ['ref', 'before', 'after', 'commits', 'pusher'], may: ['head_commit'] },
  registry_package: { has: ['action', 'registry_package'] },
  release: { has: ['action', 'release'] },
  repository: { has: ['action', 'repository'], actions: REPOSITORY_ACTIONS },
  repository_advisory: { has: ['action', 'repository_advisory'] },
  repository_dispatch: { has: ['action', 'branch', 'client_payload'] },
  repository_import: { has: ['status'] },
  repository_ruleset: { has: ['action', 'repository_ruleset'] },
  repository_vulnerability_alert: { has: ['action', 'alert.affected_range'] },
  secret_scanning_alert: { has: ['action', 'alert.secret_type'] },
  secret_scanning_alert_location: { has: ['alert.secret_type', 'location'], may: ['action'] },
  secret_scanning_scan: { has: ['action', 'source', 'completed_at'] },
  security_advisory: { has: ['action', 'security_advisory'] },
  security_and_analysis: { has: ['changes.from.security_and_analysis'] },
  sponsorship: { has: ['action', 'sponsorship'], may: ['effective_date'] },
  star: { has: ['action', 'starred_at'] },
  status: { has: ['sha', 'state', 'context', 'commit'] },
  sub_issues: {
    has: ['action'],
    may: ['sub_issue', 'parent_issue'],
    actions: ['parent_issue_added', 'parent_issue_removed', 'sub_issue_added', 'sub_issue_removed'],
  },
  team: { has: ['action', 'team'] },
  team_add: { has: ['team'] },
  watch: { has: ['action', 'repository'], actions: ['started'] },
  workflow_dispatch: { has: ['ref', 'workflow'], may: ['inputs'] },
  workflow_job: { has: ['action', 'workflow_job'], may: ['deployment'] },
  workflow_run: { has: ['action', 'workflow_run'], may: ['workflow'] },
};

/** Any event may have these, depending on the hook and on where the event happened. */
const OF_ANY_EVENT = ['repository', 'organization', 'installation', 'changes'];

const memberOf = (path: string) => path.split('.')[0] as string;
const DISTINGUISHING = new Set(
  Object.values(EVENTS)
    .flatMap(({ has, may = [] }) => [...has, ...may].map(memberOf))
    .filter((member) => !OF_ANY_EVENT.includes(member)),
);

/** Throws a 400 if the body does not belong to the event in the header. Accepts unknown events: no automation can name them. */
export function checkGithubEvent(name: string, payload: Record<string, unknown>): void {
  const members = Object.hasOwn(EVENTS, name) ? EVENTS[name] : undefined;
  if (!members) return;
  const { has, may = [], without = [], actions } = members;
  const missing = has.find((path) => valueAt(payload, path) === undefined);
  if (missing !== undefined) throw otherEvent(name, `it has no \`${missing}\``);
  const own = new Set([...has, ...may].map(memberOf));
  const foreign = Object.keys(payload).find(
    (member) => without.includes(member) || (DISTINGUISHING.has(member) && !own.has(member)),
  );
  if (foreign !== undefined) throw otherEvent(name, `it has \`${foreign}\`, which belongs to another event`);
  const { action } = payload;
  if (actions && !(typeof action === 'string' && actions.includes(action))) {
    throw otherEvent(name, `its \`action\` is none of ${actions.join(', ')}`);
  }
}

function valueAt(payload: Record<string, unknown>, path: string): unknown {
  let value: unknown = payload;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

const otherEvent = (name: string, why: string) =>
  new Problem(
    400,
    'BAD_REQUEST',
    `the header X-GitHub-Event is ${name}, but the body belongs to another event: ${why}; send the delivery unchanged`,
  );
