import type { SimAnswer } from './exchange.ts';
import type { Comment, CommitStatus, Issue } from './github-issues.ts';
import { stableId } from './store.ts';

/** Who a token of the local host acts as. */
export const APP_LOGIN = 'countersign[bot]';

const numericId = (name: string): number => Number.parseInt(stableId(`github:${name}`, 7), 16);

const userShape = (login: string): Record<string, unknown> => ({
  login,
  id: numericId(`user ${login}`),
  type: login.endsWith('[bot]') ? 'Bot' : 'User',
  site_admin: false,
});

export const labelShape = (name: string): Record<string, unknown> => ({
  id: numericId(`label ${name}`),
  name,
  color: 'ededed',
  default: false,
  description: null,
});

export function issueShape(issue: Issue, comments: number, baseUrl: string): Record<string, unknown> {
  const repository_url = `${baseUrl}/repos/${issue.repository}`;
  const assignees = issue.assignees.map(userShape);
  return {
    url: `${repository_url}/issues/${issue.number}`,
    repository_url,
    html_url: `https://github.com/${issue.repository}/issues/${issue.number}`,
    id: issue.id,
    number: issue.number,
    title: issue.title,
    body: null,
    user: userShape('octocat'),
    state: issue.state,
    locked: false,
    labels: issue.labels.map(labelShape),
    assignee: assignees[0] ?? null,
    assignees,
    comments,
    created_at: issue.created_at,
    updated_at: issue.updated_at,
    closed_at: null,
  };
}

export const commentShape = (comment: Comment, baseUrl: string): Record<string, unknown> => ({
  id: comment.id,
  url: `${baseUrl}/repos/${comment.repository}/issues/comments/${comment.id}`,
  html_url: `https://github.com/${comment.repository}/issues/${comment.number}#issuecomment-${comment.id}`,
  issue_url: `${baseUrl}/repos/${comment.repository}/issues/${comment.number}`,
  body: comment.body,
  user: userShape(comment.author),
  author_association: 'NONE',
  created_at: comment.created_at,
  updated_at: comment.updated_at,
});

export const statusShape = (status: CommitStatus): Record<string, unknown> => ({
  ...status,
  creator: userShape(APP_LOGIN),
  updated_at: status.created_at,
});

export const failure = (status: number, message: string, extra: Record<string, unknown> = {}): SimAnswer => ({
  status,
  body: { message, ...extra, documentation_url: 'https://docs.github.com/rest', status: String(status) },
});

export const notFound = (): SimAnswer => failure(404, 'Not Found');

export const invalid = (resource: string, field: string): SimAnswer =>
  failure(422, 'Validation Failed', { errors: [{ resource, field, code: 'missing_field' }] });
