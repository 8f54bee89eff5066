import type { SimResponse } from '../exchange.ts';
import { stableId } from '../store.ts';
import type { Comment, CommitStatus, Issue } from './issues.ts';

/** The user of the tokens of the local host. */
export const APP_LOGIN = 'countersign[bot]';

/** The identifiers of a thing that has no stored number. */
function idsOf(name: string): { id: number; node_id: string } {
  const digest = stableId(`github:${name}`, 16);
  return { id: Number.parseInt(digest.slice(0, 7), 16), node_id: Buffer.from(digest).toString('base64') };
}

const nodeId = (name: string): string => idsOf(name).node_id;

const USER_URLS = {
  followers_url: 'followers',
  following_url: 'following{/other_user}',
  gists_url: 'gists{/gist_id}',
  starred_url: 'starred{/owner}{/repo}',
  subscriptions_url: 'subscriptions',
  organizations_url: 'orgs',
  repos_url: 'repos',
  events_url: 'events{/privacy}',
  received_events_url: 'received_events',
};

const REPOSITORY_URLS = {
  archive_url: '{archive_format}{/ref}',
  assignees_url: 'assignees{/user}',
  blobs_url: 'git/blobs{/sha}',
  branches_url: 'branches{/branch}',
  collaborators_url: 'collaborators{/collaborator}',
  comments_url: 'comments{/number}',
  commits_url: 'commits{/sha}',
  compare_url: 'compare/{base}...{head}',
  contents_url: 'contents/{+path}',
  contributors_url: 'contributors',
  deployments_url: 'deployments',
  downloads_url: 'downloads',
  events_url: 'events',
  forks_url: 'forks',
  git_commits_url: 'git/commits{/sha}',
  git_refs_url: 'git/refs{/sha}',
  git_tags_url: 'git/tags{/sha}',
  hooks_url: 'hooks',
  issue_comment_url: 'issues/comments{/number}',
  issue_events_url: 'issues/events{/number}',
  issues_url: 'issues{/number}',
  keys_url: 'keys{/key_id}',
  labels_url: 'labels{/name}',
  languages_url: 'languages',
  merges_url: 'merges',
  milestones_url: 'milestones{/number}',
  notifications_url: 'notifications{?since,all,participating}',
  pulls_url: 'pulls{/number}',
  releases_url: 'releases{/id}',
  stargazers_url: 'stargazers',
  statuses_url: 'statuses/{sha}',
  subscribers_url: 'subscribers',
  subscription_url: 'subscription',
  tags_url: 'tags',
  teams_url: 'teams',
  trees_url: 'git/trees{/sha}',
};

const urlsUnder = (base: string, paths: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, `${base}/${path}`]));

const avatarUrl = (id: number): string => `https://avatars.githubusercontent.com/u/${id}?v=4`;

function userShape(login: string, baseUrl: string): Record<string, unknown> {
  const url = `${baseUrl}/users/${encodeURIComponent(login)}`;
  const ids = idsOf(`user ${login}`);
  return {
    login,
    ...ids,
    avatar_url: avatarUrl(ids.id),
    gravatar_id: '',
    url,
    html_url: `https://github.com/${encodeURIComponent(login)}`,
    ...urlsUnder(url, USER_URLS),
    type: login.endsWith('[bot]') ? 'Bot' : 'User',
    site_admin: false,
  };
}

function repositoryShape(repository: string, baseUrl: string): Record<string, unknown> {
  const [owner = '', name = ''] = repository.split('/');
  const url = `${baseUrl}/repos/${repository}`;
  return {
    ...idsOf(`repository ${repository}`),
    name,
    full_name: repository,
    owner: userShape(owner, baseUrl),
    private: false,
    html_url: `https://github.com/${repository}`,
    description: null,
    fork: false,
    url,
    ...urlsUnder(url, REPOSITORY_URLS),
  };
}

export const labelShape = (name: string, repository: string, baseUrl: string): Record<string, unknown> => ({
  ...idsOf(`label ${name}`),
  url: `${baseUrl}/repos/${repository}/labels/${encodeURIComponent(name)}`,
  name,
  color: 'ededed',
  default: false,
  description: null,
});

export function issueShape(issue: Issue, comments: number, baseUrl: string): Record<string, unknown> {
  const repository_url = `${baseUrl}/repos/${issue.repository}`;
  const url = `${repository_url}/issues/${issue.number}`;
  const assignees = issue.assignees.map((login) => userShape(login, baseUrl));
  return {
    url,
    repository_url,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    html_url: `https://github.com/${issue.repository}/issues/${issue.number}`,
    id: issue.id,
    node_id: nodeId(`issue ${issue.id}`),
    number: issue.number,
    title: issue.title,
    body: issue.body ?? null,
    user: userShape('octocat', baseUrl),
    author_association: 'NONE',
    state: issue.state,
    ...(issue.state_reason && { state_reason: issue.state_reason }),
    locked: false,
    labels: issue.labels.map((name) => labelShape(name, issue.repository, baseUrl)),
    assignee: assignees[0] ?? null,
    assignees,
    milestone: null,
    comments,
    created_at: issue.created_at,
    updated_at: issue.updated_at,
    closed_at: issue.state === 'closed' ? issue.updated_at : null,
  };
}

export const commentShape = (comment: Comment, baseUrl: string): Record<string, unknown> => ({
  id: comment.id,
  node_id: nodeId(`comment ${comment.id}`),
  url: `${baseUrl}/repos/${comment.repository}/issues/comments/${comment.id}`,
  html_url: `https://github.com/${comment.repository}/issues/${comment.number}#issuecomment-${comment.id}`,
  issue_url: `${baseUrl}/repos/${comment.repository}/issues/${comment.number}`,
  body: comment.body,
  user: userShape(comment.author, baseUrl),
  author_association: 'NONE',
  performed_via_github_app: null,
  created_at: comment.created_at,
  updated_at: comment.updated_at,
});

interface OfCommit {
  repository: string;
  sha: string;
}

export const statusShape = (
  status: CommitStatus,
  { repository, sha }: OfCommit,
  baseUrl: string,
): Record<string, unknown> => ({
  ...status,
  node_id: nodeId(`status ${status.id}`),
  url: `${baseUrl}/repos/${repository}/statuses/${sha}`,
  avatar_url: avatarUrl(idsOf(`user ${APP_LOGIN}`).id),
  creator: userShape(APP_LOGIN, baseUrl),
  updated_at: status.created_at,
});

/** `newest` has the newest status of each context. */
export function combinedShape(
  newest: readonly CommitStatus[],
  statuses: unknown,
  { repository, sha }: OfCommit,
  baseUrl: string,
): Record<string, unknown> {
  const states = newest.map(({ state }) => state);
  const failed = states.includes('failure') || states.includes('error');
  const pending = states.length === 0 || states.includes('pending');
  const commit_url = `${baseUrl}/repos/${repository}/commits/${sha}`;
  return {
    state: failed ? 'failure' : pending ? 'pending' : 'success',
    statuses,
    sha,
    total_count: newest.length,
    repository: repositoryShape(repository, baseUrl),
    commit_url,
    url: `${commit_url}/status`,
  };
}

export const failure = (status: number, message: string, extra: Record<string, unknown> = {}): SimResponse => ({
  status,
  body: { message, ...extra, documentation_url: 'https://docs.github.com/rest', status: String(status) },
});

export const notFound = (): SimResponse => failure(404, 'Not Found');

export const invalid = (resource: string, field: string): SimResponse =>
  failure(422, 'Validation Failed', { errors: [{ resource, field, code: 'missing_field' }] });
