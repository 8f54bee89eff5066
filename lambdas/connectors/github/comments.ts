import * as z from 'zod';
import { later } from '../../run/lease.ts';
import type { Reversal } from '../../run/receipt.ts';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { NOT_FOUND, TargetRefused, unlessStatus } from '../target-errors.ts';
import { github, githubPages, Repository } from './client.ts';
import { escapeMarkdown } from './escape-markdown.ts';
import { IssueOf, issueName, issuePath } from './issue.ts';

/** GitHub allows more, but the receipt stores the text so that an undo can check that nobody has changed it. */
export const CONTENT_MAX_CHARACTERS = 16_000;
/** Allows for a difference between GitHub's clock and the local one. */
export const CLOCK_SKEW_MS = 60_000;

const Comment = z.lazy(() => z.object({ id: z.int(), body: z.string() }));
const CommentOutput = z.lazy(() => z.strictObject({ commentId: z.int() }));

export const TOO_LONG_ESCAPED = {
  path: ['body'],
  message: `is longer than ${CONTENT_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
};

const Body = z.lazy(() => z.string().min(1).max(CONTENT_MAX_CHARACTERS).describe('the text of the comment'));

const CreateInput = z.lazy(() =>
  z
    .strictObject({ ...IssueOf, body: Body, markdown: Markdown })
    .refine((input) => written(input).length <= CONTENT_MAX_CHARACTERS, TOO_LONG_ESCAPED),
);
type CreateInput = z.infer<typeof CreateInput>;

/** Text from elsewhere must not mention people or reference issues. */
const written = ({ body, markdown }: { body: string; markdown?: boolean }) => (markdown ? body : escapeMarkdown(body));

export const createComment = operation({
  tool: 'github.comment.create',
  summary: 'Adds a comment to an issue or pull request.',
  effect: 'probe',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: CreateInput,
  output: CommentOutput,
  content: ['body'],
  returnsOnlyIds: true,
  markdownField: 'body',
  propose: (input, instance) => ({
    target: `github:${issueName(input)}`,
    fields: { body: written(input) },
    key: writeKey(['gh', 'comment', 'create', instance, issueName(input)], { body: written(input) }),
  }),
  // People edit the escaped text; escaping it again would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  async perform(input, { access, mark }) {
    const { status, body: comment } = await github(access, {
      method: 'POST',
      path: `${issuePath(input)}/comments`,
      body: { body: marked(written(input), mark) },
      responseSchema: Comment,
    });
    return { ...created(input, comment), response: { status, commentId: comment.id } };
  },
  async probe(input, { access, mark, openSince }) {
    const path = `${issuePath(input)}/comments?since=${later(openSince, -CLOCK_SKEW_MS)}`;
    for await (const page of githubPages(access, path, z.array(Comment))) {
      const found = page.find(({ body }) => isMarked(body, hidden(mark)));
      if (found) return { ...created(input, found), response: { commentId: found.id }, recovered: true };
    }
    return undefined;
  },
});

/** On its own line: a reply that quotes the comment has `> ` before it. */
export const marked = (body: string, mark: string) => `${body}\n\n${hidden(mark)}`;
export const hidden = (mark: string) => `<!-- ${mark} -->`;
export const isMarked = (body: string, line: string) => body.split('\n').some((each) => each.trim() === line);

function created({ owner, repo }: CreateInput, { id, body }: z.infer<typeof Comment>) {
  const input = { owner, repo, commentId: id };
  const reversal: Reversal = { tool: 'github.comment.delete', input, expects: { comment: body } };
  return { output: { commentId: id }, reversal };
}

const CommentOf = { ...Repository, commentId: z.int().positive().describe('the id of the comment') };
const DeleteInput = z.lazy(() => z.strictObject(CommentOf));
type CommentRef = z.infer<typeof DeleteInput>;

export const deleteComment = operation({
  tool: 'github.comment.delete',
  summary: 'Deletes a comment of an issue or pull request.',
  effect: 'natural',
  risk: 'medium',
  destructive: true,
  reversible: false,
  connection: 'github',
  input: DeleteInput,
  output: CommentOutput,
  fixed: ['commentId'],
  propose: (input, instance) => ({
    target: commentName(input),
    fields: { commentId: input.commentId },
    after: { comment: null },
    key: writeKey(['gh', 'comment', 'delete', instance, `${input.owner}/${input.repo}`], {
      commentId: input.commentId,
    }),
  }),
  before: (input, access) => readComment(input, access),
  async perform(input, { access, before }) {
    if (before?.comment === null) throw noComment(input);
    const deleting = github(access, { method: 'DELETE', path: commentPath(input), responseSchema: z.undefined() });
    // It existed before, so 404 means that it is now deleted.
    const deleted = await deleting.catch(unlessStatus(NOT_FOUND));
    return {
      output: { commentId: input.commentId },
      ...(before && { before }),
      reversal: { irreversible: 'a deleted comment cannot be restored: its author, date and position are lost' },
      response: { status: deleted?.status ?? NOT_FOUND },
    };
  },
});

async function readComment(input: CommentRef, access: Access): Promise<{ comment: string | null }> {
  const reading = github(access, { method: 'GET', path: commentPath(input), responseSchema: Comment });
  const found = await reading.catch(unlessStatus(NOT_FOUND));
  return { comment: found?.body.body ?? null };
}

const UpdateInput = z.lazy(() =>
  z
    .strictObject({ ...CommentOf, body: Body, markdown: Markdown })
    .refine((input) => written(input).length <= CONTENT_MAX_CHARACTERS, TOO_LONG_ESCAPED),
);

export const updateComment = operation({
  tool: 'github.comment.update',
  summary: 'Replaces the text of a comment of an issue or pull request.',
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: UpdateInput,
  output: CommentOutput,
  content: ['body'],
  returnsOnlyIds: true,
  markdownField: 'body',
  propose: (input, instance) => ({
    target: commentName(input),
    fields: { body: written(input) },
    after: { comment: written(input) },
    key: writeKey(['gh', 'comment', 'update', instance, commentName(input)], { body: written(input) }),
  }),
  // People edit the escaped text; escaping it again would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  before: (input, access) => readComment(input, access),
  async perform(input, { access, before }) {
    const { owner, repo, commentId } = input;
    if (before?.comment === null) throw noComment(input);
    const { status, body: now } = await github(access, {
      method: 'PATCH',
      path: commentPath(input),
      body: { body: written(input) },
      responseSchema: Comment,
    });
    const undo = { owner, repo, commentId, body: before?.comment, markdown: true };
    return {
      output: { commentId },
      ...(before && { before }),
      reversal: before
        ? { tool: 'github.comment.update', input: undo, expects: { comment: now.body } }
        : { irreversible: 'the comment before the write could not be read' },
      response: { status },
    };
  },
});

const noComment = ({ commentId }: CommentRef) =>
  new TargetRefused(`GitHub has no comment ${commentId}: check its id`, { retryable: false });

const commentName = ({ owner, repo, commentId }: CommentRef) => `github:${owner}/${repo}:comment:${commentId}`;

const commentPath = ({ owner, repo, commentId }: CommentRef) => `/repos/${owner}/${repo}/issues/comments/${commentId}`;
