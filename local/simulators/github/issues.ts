import type { Collection } from '../store.ts';
import type { SystemContext } from '../system.ts';

export interface Issue {
  repository: string;
  number: number;
  id: number;
  title: string;
  state: 'open' | 'closed';
  state_reason?: string | null;
  body?: string;
  labels: string[];
  assignees: string[];
  created_at: string;
  updated_at: string;
}

export interface Comment {
  id: number;
  issue: string;
  repository: string;
  number: number;
  body: string;
  author: string;
  created_at: string;
  updated_at: string;
}

export interface CommitStatus {
  id: number;
  state: string;
  context: string;
  description: string | null;
  target_url: string | null;
  created_at: string;
}

const SEEDED_ISSUES: readonly [repository: string, title: string, labels: string[]][] = [
  ['octo-org/payments', 'Refund webhook is delivered twice', ['bug']],
  ['octo-org/payments', 'Support SEPA instant transfers', ['enhancement']],
  ['octo-org/website', 'Pricing page shows last year', []],
];

export const REPOSITORIES: readonly string[] = [...new Set(SEEDED_ISSUES.map(([repository]) => repository))];

const MAX_ASSIGNEES = 10;

/**
 * Issues, comments and commit statuses. Repositories and issues are created when they are first named, because recorded
 * webhooks name many that are not seeded.
 */
export class GitHubIssues {
  readonly #context: SystemContext;
  readonly #issues: Collection<Issue>;
  readonly #comments: Collection<Comment>;
  readonly #statuses: Collection<CommitStatus>;

  constructor(context: SystemContext) {
    this.#context = context;
    this.#issues = context.store.collection('github.issue');
    this.#comments = context.store.collection('github.comment');
    this.#statuses = context.store.collection('github.status');
    if (this.#issues.latest(1).length > 0) return;
    const numbers = new Map<string, number>();
    for (const [repository, title, labels] of SEEDED_ISSUES) {
      const number = (numbers.get(repository) ?? 0) + 1;
      numbers.set(repository, number);
      this.#save({ ...this.issue(repository, number), title, labels });
    }
  }

  issue(repository: string, number: number): Issue {
    const existing = this.#issues.get(`${repository}#${number}`);
    if (existing) return existing;
    const at = this.#timestamp();
    const id = this.#context.store.next('github.id');
    const issue: Issue = {
      repository,
      number,
      id,
      title: `Issue ${number}`,
      state: 'open',
      labels: [],
      assignees: [],
      created_at: at,
      updated_at: at,
    };
    this.#save(issue);
    return issue;
  }

  createIssue(repository: string, { title, body, labels }: Pick<Issue, 'title' | 'labels'> & { body: string }): Issue {
    const number = Math.max(0, ...this.#issues.list(repository).map((issue) => issue.number)) + 1;
    const issue = { ...this.issue(repository, number), title, body, labels };
    this.#save(issue);
    return issue;
  }

  setState(issue: Issue, state: Issue['state'], reason: string): Issue {
    const state_reason = state === 'closed' ? reason || 'completed' : issue.state === 'closed' ? 'reopened' : null;
    return this.#change(issue, { state, state_reason });
  }

  latestIssues(limit: number): Issue[] {
    return this.#issues.latest(limit);
  }

  issuesOf(repository: string): Issue[] {
    return this.#issues.list(repository);
  }

  /** Label names are not case-sensitive. Adding a label that exists changes nothing. */
  addLabels(issue: Issue, names: readonly string[]): Issue {
    const labels = [...issue.labels];
    for (const name of names) if (!labels.some((label) => sameName(label, name))) labels.push(name);
    return this.#change(issue, { labels });
  }

  replaceLabels(issue: Issue, names: readonly string[]): Issue {
    return this.addLabels({ ...issue, labels: [] }, names);
  }

  /** Undefined if the issue does not have the label. */
  removeLabel(issue: Issue, name: string): Issue | undefined {
    const labels = issue.labels.filter((label) => !sameName(label, name));
    return labels.length === issue.labels.length ? undefined : this.#change(issue, { labels });
  }

  /** GitHub drops assignees after the tenth without an error. */
  addAssignees(issue: Issue, logins: readonly string[]): Issue {
    const assignees = [...issue.assignees];
    for (const login of logins) if (!assignees.some((assignee) => sameName(assignee, login))) assignees.push(login);
    return this.#change(issue, { assignees: assignees.slice(0, MAX_ASSIGNEES) });
  }

  removeAssignees(issue: Issue, logins: readonly string[]): Issue {
    const assignees = issue.assignees.filter((assignee) => !logins.some((login) => sameName(assignee, login)));
    return this.#change(issue, { assignees });
  }

  commentsOf(issue: Issue): Comment[] {
    return this.#comments.list(keyOf(issue));
  }

  addComment(issue: Issue, body: string, author: string): Comment {
    const at = this.#timestamp();
    const { repository, number } = issue;
    const id = this.#context.store.next('github.id');
    const comment: Comment = {
      id,
      issue: keyOf(issue),
      repository,
      number,
      body,
      author,
      created_at: at,
      updated_at: at,
    };
    this.#comments.put(String(id), comment, comment.issue);
    return comment;
  }

  comment(repository: string, id: string): Comment | undefined {
    const comment = this.#comments.get(id);
    return comment?.repository === repository ? comment : undefined;
  }

  editComment(comment: Comment, body: string): Comment {
    const edited = { ...comment, body, updated_at: this.#timestamp() };
    this.#comments.put(String(comment.id), edited, comment.issue);
    return edited;
  }

  deleteComment(comment: Comment): void {
    this.#comments.delete(String(comment.id));
  }

  addStatus(repository: string, sha: string, status: Omit<CommitStatus, 'id' | 'created_at'>): CommitStatus {
    const id = this.#context.store.next('github.id');
    const saved = { ...status, id, created_at: this.#timestamp() };
    this.#statuses.put(String(id), saved, `${repository}@${sha}`);
    return saved;
  }

  /** Newest first. Only the newest status of a context counts. */
  statusesOf(repository: string, sha: string): CommitStatus[] {
    return this.#statuses.list(`${repository}@${sha}`).reverse();
  }

  #change(issue: Issue, change: Partial<Issue>): Issue {
    const before = this.issue(issue.repository, issue.number);
    const after = { ...before, ...change };
    if (JSON.stringify(before) === JSON.stringify(after)) return before;
    const changed = { ...after, updated_at: this.#timestamp() };
    this.#save(changed);
    return changed;
  }

  #save(issue: Issue): void {
    this.#issues.put(keyOf(issue), issue, issue.repository);
  }

  #timestamp(): string {
    return `${new Date(this.#context.now()).toISOString().slice(0, 19)}Z`;
  }
}

export const keyOf = (issue: Issue): string => `${issue.repository}#${issue.number}`;

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
