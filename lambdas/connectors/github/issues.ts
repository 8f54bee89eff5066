import * as z from 'zod';
import { later } from '../../run/lease.ts';
import type { TouchedState } from '../../run/receipt.ts';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { TargetRefused } from '../target-errors.ts';
import { github, githubPages, Repository } from './client.ts';
import { CLOCK_SKEW_MS, CONTENT_MAX_CHARACTERS, hidden, isMarked, marked, TOO_LONG_ESCAPED } from './comments.ts';
import { escapeMarkdown } from './escape-markdown.ts';
import { IssueOf, issueName, issuePath } from './issue.ts';
import { LABELS_PER_WRITE_MAX, Label } from './labels.ts';

const TITLE_MAX_CHARACTERS = 256;
/** GitHub finds no mentions and references in titles. */
const Title = z.lazy(() =>
  z
    .string()
    .min(1)
    .max(TITLE_MAX_CHARACTERS)
    .regex(/^[^\r\n]*$/, 'a title has one line'),
);

const Issue = z.lazy(() => z.object({ number: z.int(), html_url: z.string(), body: z.string().nullish() }));
const State = z.lazy(() => z.object({ state: z.enum(['open', 'closed']), state_reason: z.string().nullish() }));
const IssueOutput = z.lazy(() => z.strictObject({ number: z.int(), url: z.string() }));

const CreateInput = z.lazy(() =>
  z
    .strictObject({
      ...Repository,
      title: Title.describe('the title of the issue'),
      body: z.string().max(CONTENT_MAX_CHARACTERS).default('').describe('the text of the issue'),
      markdown: Markdown,
      labels: z.array(Label).max(LABELS_PER_WRITE_MAX).default([]).describe('names of labels'),
    })
    .refine((input) => written(input).length <= CONTENT_MAX_CHARACTERS, TOO_LONG_ESCAPED),
);
type CreateInput = z.infer<typeof CreateInput>;

/** Text from elsewhere must not mention people or reference issues. */
const written = ({ body, markdown }: { body: string; markdown?: boolean }) => (markdown ? body : escapeMarkdown(body));
const contentOf = (input: CreateInput) => ({ title: input.title, body: written(input), labels: input.labels });

export const createIssue = operation({
  tool: 'github.issue.create',
  summary: 'Opens an issue.',
  effect: 'probe',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: CreateInput,
  output: IssueOutput,
  content: ['title', 'body', 'labels'],
  returnsOnlyIds: true,
  markdownField: 'body',
  propose: (input, instance) => ({
    target: `github:${input.owner}/${input.repo}:new issue`,
    fields: contentOf(input),
    key: writeKey(['gh', 'issue', 'create', instance, `${input.owner}/${input.repo}`], contentOf(input)),
  }),
  // People edit the escaped text; escaping it again would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  async perform(input, { access, mark }) {
    const { title, body, labels } = contentOf(input);
    const { status, body: issue } = await github(access, {
      method: 'POST',
      path: `/repos/${input.owner}/${input.repo}/issues`,
      body: { title, body: marked(body, mark), ...(labels.length > 0 && { labels }) },
      responseSchema: Issue,
    });
    return { ...created(input, issue), response: { status, number: issue.number } };
  },
  async probe(input, { access, mark, openSince }) {
    const since = later(openSince, -CLOCK_SKEW_MS);
    const path = `/repos/${input.owner}/${input.repo}/issues?state=all&since=${since}`;
    for await (const page of githubPages(access, path, z.array(Issue))) {
      const found = page.find(({ body }) => isMarked(body ?? '', hidden(mark)));
      if (found) return { ...created(input, found), response: { number: found.number }, recovered: true };
    }
    return undefined;
  },
});

/** GitHub deletes no issue for an app, so the undo closes it. */
function created({ owner, repo }: CreateInput, { number, html_url }: z.infer<typeof Issue>) {
  const input = { owner, repo, number, reason: 'not_planned' };
  const reversal = { tool: 'github.issue.close', input, expects: { state: 'open' } };
  return { output: { number, url: html_url }, reversal };
}

const CloseInput = z.lazy(() =>
  z.strictObject({
    ...IssueOf,
    reason: z.enum(['completed', 'not_planned']).default('completed').describe('why it is closed'),
  }),
);

export const closeIssue = operation({
  tool: 'github.issue.close',
  summary: 'Closes an issue or pull request.',
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: CloseInput,
  output: z.strictObject({ state: z.enum(['open', 'closed']) }),
  content: ['reason'],
  propose: (input, instance) => ({
    target: `github:${issueName(input)}`,
    fields: { reason: input.reason },
    after: { state: `closed as ${input.reason}` },
    key: writeKey(['gh', 'issue', 'close', instance, issueName(input)], { reason: input.reason }),
  }),
  before: (input, access) => readState(input, access),
  perform: (input, { access, before }) =>
    setState(access, input, { state: 'closed', state_reason: input.reason }, before),
});

const ReopenInput = z.lazy(() => z.strictObject(IssueOf));

export const reopenIssue = operation({
  tool: 'github.issue.reopen',
  summary: 'Reopens a closed issue or pull request.',
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: ReopenInput,
  output: z.strictObject({ state: z.enum(['open', 'closed']) }),
  propose: (input, instance) => ({
    target: `github:${issueName(input)}`,
    fields: {},
    after: { state: 'open' },
    key: writeKey(['gh', 'issue', 'reopen', instance, issueName(input)], {}),
  }),
  before: (input, access) => readState(input, access),
  perform: (input, { access, before }) => setState(access, input, { state: 'open' }, before),
});

type IssueRef = z.infer<typeof ReopenInput>;

async function readState(input: IssueRef, access: Access) {
  const { body } = await github(access, { method: 'GET', path: issuePath(input), responseSchema: State });
  return stateOf(body);
}

/** `open`, `closed as completed`; a pull request is `closed` without a reason. */
const stateOf = ({ state, state_reason }: z.infer<typeof State>): { state: string } => ({
  state: state === 'closed' && state_reason ? `closed as ${state_reason}` : state,
});

async function setState(
  access: Access,
  { owner, repo, number }: IssueRef,
  wanted: { state: 'open' | 'closed'; state_reason?: string },
  before: TouchedState | undefined,
) {
  const path = issuePath({ owner, repo, number });
  const { status, body } = await github(access, { method: 'PATCH', path, body: wanted, responseSchema: State });
  if (body.state !== wanted.state) {
    const message = `GitHub left the issue ${body.state}: check that the credential may ${wanted.state === 'open' ? 'reopen' : 'close'} it`;
    throw new TargetRefused(message, { retryable: false });
  }
  return {
    output: { state: body.state },
    ...(before && { before }),
    reversal: stateReversal({ owner, repo, number }, before, stateOf(body)),
    response: { status },
  };
}

function stateReversal(input: IssueRef, before: TouchedState | undefined, now: { state: string }) {
  if (!before) return { irreversible: 'the state before the write could not be read' };
  if (before.state === now.state) return { irreversible: 'nothing was changed: the issue already had this state' };
  if (before.state === 'open') return { tool: 'github.issue.reopen', input, expects: now };
  const reason = before.state === 'closed as not_planned' ? 'not_planned' : 'completed';
  return { tool: 'github.issue.close', input: { ...input, reason }, expects: now };
}
