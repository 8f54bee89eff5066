import { credentialOf, IssuedTokens } from '../credentials.ts';
import { fieldsOf, type SimCall, type SimResponse, textOf } from '../exchange.ts';
import { type Handler, router, type SimulatedSystem, type Surprise, type SystemContext } from '../system.ts';
import { type CommitStatus, GitHubIssues, type Issue, REPOSITORIES } from './issues.ts';
import {
  APP_LOGIN,
  combinedShape,
  commentShape,
  failure,
  invalid,
  issueShape,
  labelShape,
  notFound,
  statusShape,
} from './shapes.ts';

const INSTALLATION_TOKEN_SECONDS = 3_600;
const HOUR_MS = 3_600_000;
const CALLS_PER_HOUR = 15_000;
const STATUS_STATES = ['error', 'failure', 'pending', 'success'];
const SECONDARY_LIMIT = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';
const PERSONAL_TOKEN_PREFIXES = ['ghp_', 'github_pat_'];

export interface GitHub extends SimulatedSystem {
  readonly issues: GitHubIssues;
}

type Param = (name: string) => string;

export function openGitHub(context: SystemContext): GitHub {
  const issues = new GitHubIssues(context);
  const tokens = new IssuedTokens(context.store, 'github', context.now);
  const route = router({
    ...issueRoutes(context, issues),
    ...commentRoutes(context, issues),
    ...statusRoutes(context, issues),
    ...workflowRoutes(context),
    'POST /app/installations/:id/access_tokens': () => grantToken(context, tokens),
    'GET /user': () => ({ status: 200, body: { login: APP_LOGIN } }),
    'GET /installation/repositories': () => ({ status: 200, body: repositoriesOf(REPOSITORIES) }),
  });
  const answer = (call: SimCall, surprise: Surprise | undefined): SimResponse => {
    const refusal = authenticate(call, tokens);
    if (refusal) return refusal;
    if (surprise === 'secondary_limit') return failure(403, SECONDARY_LIMIT);
    if (call.bodyIsMalformed) return failure(400, 'Problems parsing JSON');
    return route(surprised(call, surprise)) ?? notFound();
  };
  return {
    issues,
    answer: (call, surprise) => withRateLimit(context, answer(call, surprise)),
    refuse: (status, retryAfterSeconds) => refuse(context, status, retryAfterSeconds),
  };
}

/** The repositories that the app is installed for. */
const repositoriesOf = (names: readonly string[]) => ({
  total_count: names.length,
  repositories: names.map((full_name) => ({ full_name })),
});

function issueRoutes(context: SystemContext, issues: GitHubIssues): Record<string, Handler> {
  const ISSUE = '/repos/:owner/:repo/issues/:number';
  const onIssue =
    (work: (issue: Issue, call: SimCall, param: Param) => SimResponse): Handler =>
    (call, param) =>
      /^[1-9]\d*$/.test(param('number'))
        ? work(issues.issue(repositoryOf(param), Number(param('number'))), call, param)
        : notFound();
  const show = (status: number, issue: Issue): SimResponse => ({
    status,
    body: issueShape(issue, issues.commentsOf(issue).length, context.baseUrl()),
  });
  const label = (issue: Issue) => (name: string) => labelShape(name, issue.repository, context.baseUrl());
  const labels = (issue: Issue): SimResponse => ({ status: 200, body: issue.labels.map(label(issue)) });
  return {
    'GET /repos/:owner/:repo/issues': (call, param) => {
      const since = Date.parse(call.query.get('since') ?? '') || 0;
      const state = call.query.get('state') ?? 'open';
      const all = issues
        .issuesOf(repositoryOf(param))
        .reverse()
        .filter((issue) => state === 'all' || issue.state === state)
        .filter((issue) => Date.parse(issue.updated_at) >= since);
      return listed(context, call, all, (issue) => show(200, issue).body);
    },
    'POST /repos/:owner/:repo/issues': (call, param) => {
      const { title, body } = fieldsOf(call.body);
      if (textOf(title) === '') return invalid('Issue', 'title');
      const labels = labelNames(call.body) ?? [];
      return show(201, issues.createIssue(repositoryOf(param), { title: textOf(title), body: textOf(body), labels }));
    },
    [`GET ${ISSUE}`]: onIssue((issue) => show(200, issue)),
    [`PATCH ${ISSUE}`]: onIssue((issue, call) => {
      const { state, state_reason } = fieldsOf(call.body);
      if (state !== 'open' && state !== 'closed') return invalid('Issue', 'state');
      return show(200, issues.setState(issue, state, textOf(state_reason)));
    }),
    [`GET ${ISSUE}/labels`]: onIssue((issue, call) => listed(context, call, issue.labels, label(issue))),
    [`POST ${ISSUE}/labels`]: onIssue((issue, call) => {
      const names = labelNames(call.body);
      return names ? labels(issues.addLabels(issue, names)) : invalid('Label', 'labels');
    }),
    [`PUT ${ISSUE}/labels`]: onIssue((issue, call) => labels(issues.replaceLabels(issue, labelNames(call.body) ?? []))),
    [`DELETE ${ISSUE}/labels`]: onIssue((issue) => {
      issues.replaceLabels(issue, []);
      return { status: 204 };
    }),
    [`DELETE ${ISSUE}/labels/:name`]: onIssue((issue, _call, param) => {
      const changed = issues.removeLabel(issue, param('name'));
      return changed ? labels(changed) : failure(404, 'Label does not exist');
    }),
    [`POST ${ISSUE}/assignees`]: onIssue((issue, call) => show(201, issues.addAssignees(issue, assigneesOf(call)))),
    [`DELETE ${ISSUE}/assignees`]: onIssue((issue, call) =>
      show(200, issues.removeAssignees(issue, assigneesOf(call))),
    ),
    [`GET ${ISSUE}/comments`]: onIssue((issue, call) => {
      const since = Date.parse(call.query.get('since') ?? '') || 0;
      const comments = issues.commentsOf(issue).filter((comment) => Date.parse(comment.updated_at) >= since);
      return listed(context, call, comments, (comment) => commentShape(comment, context.baseUrl()));
    }),
    [`POST ${ISSUE}/comments`]: onIssue((issue, call) => {
      const body = textOf(fieldsOf(call.body).body);
      if (body === '') return invalid('IssueComment', 'body');
      return { status: 201, body: commentShape(issues.addComment(issue, body, APP_LOGIN), context.baseUrl()) };
    }),
  };
}

function commentRoutes(context: SystemContext, issues: GitHubIssues): Record<string, Handler> {
  const COMMENT = '/repos/:owner/:repo/issues/comments/:id';
  const find = (param: Param) => issues.comment(repositoryOf(param), param('id'));
  return {
    [`GET ${COMMENT}`]: (_call, param) => {
      const comment = find(param);
      return comment ? { status: 200, body: commentShape(comment, context.baseUrl()) } : notFound();
    },
    [`PATCH ${COMMENT}`]: (call, param) => {
      const comment = find(param);
      const body = textOf(fieldsOf(call.body).body);
      if (!comment) return notFound();
      if (body === '') return invalid('IssueComment', 'body');
      return { status: 200, body: commentShape(issues.editComment(comment, body), context.baseUrl()) };
    },
    [`DELETE ${COMMENT}`]: (_call, param) => {
      const comment = find(param);
      if (!comment) return notFound();
      issues.deleteComment(comment);
      return { status: 204 };
    },
  };
}

function statusRoutes(context: SystemContext, issues: GitHubIssues): Record<string, Handler> {
  const commitOf = (param: Param) => ({ repository: repositoryOf(param), sha: param('sha') });
  const shape = (param: Param) => (status: CommitStatus) => statusShape(status, commitOf(param), context.baseUrl());
  const list: Handler = (call, param) =>
    listed(context, call, issues.statusesOf(repositoryOf(param), param('sha')), shape(param));
  return {
    'GET /repos/:owner/:repo/statuses/:sha': list,
    'GET /repos/:owner/:repo/commits/:sha/statuses': list,
    'GET /repos/:owner/:repo/commits/:sha/status': (call, param) => {
      const all = issues.statusesOf(repositoryOf(param), param('sha'));
      const names = all.map((status) => status.context.toLowerCase());
      const newest = all.filter((_, index) => names.indexOf(names[index] ?? '') === index);
      const { body: statuses, headers } = listed(context, call, newest, shape(param));
      return { status: 200, headers, body: combinedShape(newest, statuses, commitOf(param), context.baseUrl()) };
    },
    'POST /repos/:owner/:repo/statuses/:sha': (call, param) => {
      const { state, context, description, target_url } = fieldsOf(call.body);
      if (!STATUS_STATES.includes(textOf(state))) return invalid('Status', 'state');
      const status = issues.addStatus(repositoryOf(param), param('sha'), {
        state: textOf(state),
        context: textOf(context) || 'default',
        description: textOf(description) || null,
        target_url: textOf(target_url) || null,
      });
      return { status: 201, body: shape(param)(status) };
    },
  };
}

/** Every repository has every workflow. The dispatches are stored, so that people and tests see them. */
function workflowRoutes(context: SystemContext): Record<string, Handler> {
  const dispatches = context.store.collection<{ repository: string; workflow: string; ref: string }>('github.dispatch');
  return {
    'POST /repos/:owner/:repo/actions/workflows/:workflow/dispatches': (call, param) => {
      const ref = textOf(fieldsOf(call.body).ref);
      if (ref === '') return failure(422, 'No ref found');
      const repository = repositoryOf(param);
      const dispatch = { repository, workflow: param('workflow'), ref };
      dispatches.put(String(context.store.next('github.id')), dispatch, repository);
      return { status: 204 };
    },
    'GET /repos/:owner/:repo/actions/runs': (_call, param) => ({
      status: 200,
      body: { workflow_runs: dispatches.list(repositoryOf(param)) },
    }),
  };
}

const repositoryOf = (param: Param): string => `${param('owner')}/${param('repo')}`;

/** One page of a list, with the URL of the next page in `link`. */
function listed<T>(context: SystemContext, call: SimCall, things: readonly T[], shape: (thing: T) => unknown) {
  const size = Math.min(Number(call.query.get('per_page') ?? 30) || 30, 100);
  const number = Math.max(Number(call.query.get('page') ?? 1) || 1, 1);
  const body = things.slice((number - 1) * size, number * size).map(shape);
  if (things.length <= number * size) return { status: 200, body };
  const next = new URLSearchParams({ ...Object.fromEntries(call.query), page: String(number + 1) });
  const link = `<${context.baseUrl()}/${call.segments.map(encodeURIComponent).join('/')}?${next}>; rel="next"`;
  return { status: 200, headers: { link }, body };
}

/** The call as the simulator handles it. */
function surprised(call: SimCall, surprise: Surprise | undefined): SimCall {
  if (surprise === 'assignees_ignored') return { ...call, body: { assignees: [] } };
  if (surprise !== 'short_pages') return call;
  const query = new URLSearchParams(call.query);
  query.set('per_page', '1');
  return { ...call, query };
}

/** GitHub accepts `{"labels": [...]}` and an array, with names or with objects that have a name. */
function labelNames(body: unknown): string[] | undefined {
  const list = Array.isArray(body) ? body : fieldsOf(body).labels;
  if (!Array.isArray(list)) return undefined;
  const names = list.map((label) => textOf(label) || textOf(fieldsOf(label).name));
  return names.includes('') ? undefined : names;
}

function assigneesOf(call: SimCall): string[] {
  const logins = fieldsOf(call.body).assignees;
  return Array.isArray(logins) ? logins.map(textOf).filter(Boolean) : [];
}

/** The calls of an app have a JWT. It must be present, but it is not verified here. */
function authenticate(call: SimCall, tokens: IssuedTokens): SimResponse | undefined {
  const token = credentialOf(call.header('authorization'), 'bearer', 'token');
  if (token === '') return failure(401, 'Requires authentication');
  const isAppJwt = call.segments[0] === 'app' && token.split('.').length === 3;
  return isAppJwt || tokens.accepts(token, PERSONAL_TOKEN_PREFIXES) ? undefined : failure(401, 'Bad credentials');
}

function grantToken(context: SystemContext, tokens: IssuedTokens): SimResponse {
  const token = tokens.issue(`ghs_${context.store.nextId('github.token', 36)}`, INSTALLATION_TOKEN_SECONDS);
  const expires_at = new Date(context.now() + INSTALLATION_TOKEN_SECONDS * 1000).toISOString();
  return {
    status: 201,
    body: { token, expires_at, permissions: { issues: 'write', statuses: 'write', metadata: 'read' } },
  };
}

function withRateLimit(context: SystemContext, answer: SimResponse, exhausted = false): SimResponse {
  const hour = Math.floor(context.now() / HOUR_MS);
  // Counted but not enforced, so that a load test does not stop for an hour. A fault with status 403 or 429 shows the limit.
  const counted = context.store.next(`github.calls.${hour}`);
  const used = exhausted ? CALLS_PER_HOUR : Math.min(counted, CALLS_PER_HOUR - 1);
  return {
    ...answer,
    headers: {
      // By the same clock as the reset, because a client computes its wait from both.
      date: new Date(context.now()).toUTCString(),
      'x-ratelimit-limit': String(CALLS_PER_HOUR),
      'x-ratelimit-remaining': String(CALLS_PER_HOUR - used),
      'x-ratelimit-used': String(used),
      'x-ratelimit-reset': String(((hour + 1) * HOUR_MS) / 1000),
      'x-ratelimit-resource': 'core',
      ...answer.headers,
    },
  };
}

/**
 * Three refusals that a connector must distinguish: 429 is the primary limit (`remaining: 0` and its reset), 403 with a time
 * to wait is a secondary limit, 403 without one is a missing permission.
 */
function refuse(context: SystemContext, status: number, retryAfterSeconds: number | undefined): SimResponse {
  if (status === 429) return withRateLimit(context, failure(429, 'API rate limit exceeded for installation.'), true);
  if (status !== 403) return withRateLimit(context, failure(status, `Simulated failure ${status}`));
  const message = retryAfterSeconds === undefined ? 'Resource not accessible by integration' : SECONDARY_LIMIT;
  return withRateLimit(context, failure(403, message));
}
