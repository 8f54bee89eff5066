import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

const ASSIGNEES_MAX = 10;
const NOT_FOUND: FakeAnswer = { status: 404, body: { message: 'Not Found' } };

interface Comment {
  id: number;
  issue: string;
  body: string;
  updated_at: string;
}

/** The parts of GitHub that the connector uses: labels, assignees and comments of issues, and statuses of commits. */
export class FakeGitHub {
  /** By `owner/repo#number`; other issues do not exist. */
  readonly issueLabels = new Map<string, string[]>();
  readonly #assignees = new Map<string, string[]>();
  readonly #states = new Map<string, { state: string; state_reason: string | null }>();
  readonly #created: { number: number; html_url: string; body: string; created: string; title: string }[] = [];
  readonly #dispatches: object[] = [];
  readonly #statuses = new Map<string, object[]>();
  #comments: Comment[] = [];
  #ids = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  answer(request: FakeRequest): FakeAnswer {
    const [, owner, repo, kind, which = '', part, name = ''] = request.parts;
    const repository = `${owner}/${repo}`;
    if (kind === 'statuses' || kind === 'commits') return this.#status(request, `${repository}@${which}`);
    if (kind === 'actions') return this.#actions(request);
    if (kind === 'issues' && which === '') return this.#issues(request, repository);
    if (which === 'comments') return this.#comment(request, Number(part));
    const issue = `${repository}#${which}`;
    const labels = this.issueLabels.get(issue);
    if (!labels) return NOT_FOUND;
    if (part === 'comments') return this.#commentsOf(request, issue);
    if (part === undefined && request.method === 'PATCH') return this.#setState(request, issue);
    if (part === 'labels') return changeLabels(request, labels, decodeURIComponent(name));
    return this.#assign(request, issue);
  }

  #assign({ method, body }: FakeRequest, issue: string): FakeAnswer {
    const there = this.#assignees.get(issue) ?? [];
    const named = (body?.assignees ?? []) as string[];
    // GitHub silently ignores assignees beyond its limit.
    const now =
      method === 'DELETE'
        ? there.filter((login) => !includes(named, login))
        : [...there, ...named.filter((login) => !includes(there, login))].slice(0, ASSIGNEES_MAX);
    this.#assignees.set(issue, now);
    return { status: 200, body: { assignees: now.map((login) => ({ login })), ...this.#stateOf(issue) } };
  }

  #stateOf(issue: string) {
    return this.#states.get(issue) ?? { state: 'open', state_reason: null };
  }

  #setState({ body }: FakeRequest, issue: string): FakeAnswer {
    const reason = body?.state === 'closed' ? String(body.state_reason ?? 'completed') : 'reopened';
    this.#states.set(issue, { state: String(body?.state), state_reason: reason });
    return { status: 200, body: this.#stateOf(issue) };
  }

  #issues({ method, url, body }: FakeRequest, repository: string): FakeAnswer {
    if (method === 'GET') {
      const since = Date.parse(url.searchParams.get('since') ?? '') || 0;
      const state = url.searchParams.get('state') ?? 'open';
      const wanted = this.#created
        .filter(({ created }) => Date.parse(created) >= since)
        .filter(({ number }) => state === 'all' || this.#stateOf(`${repository}#${number}`).state === state);
      return { status: 200, body: wanted };
    }
    const number = 1_000 + this.#nextId();
    const issue = {
      number,
      html_url: `https://github.com/${repository}/issues/${number}`,
      title: String(body?.title),
      body: String(body?.body),
      created: new Date(this.#clock.now()).toISOString(),
    };
    this.#created.push(issue);
    this.issueLabels.set(`${repository}#${number}`, [...((body?.labels ?? []) as string[])]);
    return { status: 201, body: issue };
  }

  #actions({ method, parts, body }: FakeRequest): FakeAnswer {
    if (method === 'GET') return { status: 200, body: { workflow_runs: this.#dispatches } };
    this.#dispatches.push({ workflow: parts[5], ref: body?.ref });
    return { status: 204, body: undefined };
  }

  #commentsOf({ method, url, body }: FakeRequest, issue: string): FakeAnswer {
    if (method === 'GET') {
      const since = Date.parse(url.searchParams.get('since') ?? '') || 0;
      const wanted = this.#comments.filter((each) => each.issue === issue && Date.parse(each.updated_at) >= since);
      return { status: 200, body: wanted };
    }
    const updated_at = new Date(this.#clock.now()).toISOString();
    const comment = { id: this.#nextId(), issue, body: String(body?.body), updated_at };
    this.#comments.push(comment);
    return { status: 201, body: comment };
  }

  #comment({ method, body }: FakeRequest, id: number): FakeAnswer {
    const comment = this.#comments.find((each) => each.id === id);
    if (!comment) return NOT_FOUND;
    if (method === 'PATCH') comment.body = String(body?.body);
    if (method !== 'DELETE') return { status: 200, body: comment };
    this.#comments = this.#comments.filter((each) => each !== comment);
    return { status: 204, body: undefined };
  }

  #status({ method, body }: FakeRequest, commit: string): FakeAnswer {
    const all = this.#statuses.get(commit) ?? [];
    if (method === 'GET') {
      const nameOf = (status: object) => (status as { context: string }).context.toLowerCase();
      const byContext = new Map(all.map((status) => [nameOf(status), status]));
      return { status: 200, body: { statuses: [...byContext.values()] } };
    }
    const status = { description: null, target_url: null, ...body };
    this.#statuses.set(commit, [...all, status]);
    return { status: 201, body: status };
  }

  #nextId(): number {
    this.#ids += 1;
    return this.#ids;
  }
}

function changeLabels({ method, body }: FakeRequest, labels: string[], name: string): FakeAnswer {
  if (method === 'DELETE') {
    const at = labels.findIndex((label) => includes([name], label));
    if (at < 0) return NOT_FOUND;
    labels.splice(at, 1);
  }
  const added = ((body?.labels ?? []) as string[]).filter((label) => !includes(labels, label));
  labels.push(...added);
  return { status: 200, body: labels.map((label) => ({ name: label })) };
}

/** GitHub compares names without regard to case. */
const includes = (names: readonly string[], name: string) =>
  names.some((each) => each.toLowerCase() === name.toLowerCase());
