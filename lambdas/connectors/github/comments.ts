import * as z from 'zod';
import { later } from '../../run/lease.ts';
import type { Reversal } from '../../run/receipt.ts';
import { Markdown, operation, writeKey } from '../connector.ts';
import { NOT_FOUND, TargetRefused, unlessStatus } from '../target-errors.ts';
import { github, githubPages, Repository } from './client.ts';
import { escapeMarkdown } from './escape-markdown.ts';
import { IssueOf, issueName, issuePath } from './issue.ts';

/** GitHub allows more, but the receipt stores the text so that an undo can check that nobody has changed it. */
const COMMENT_MAX_CHARACTERS = 16_000;
/** Allows for a difference between GitHub's clock and the local one. */
const CLOCK_SKEW_MS = 60_000;

const Comment = z.object({ id: z.int(), body: z.string() });
const CommentOutput = z.strictObject({ commentId: z.int() });

const CreateInput = z
  .strictObject({ ...IssueOf, body: z.string().min(1).max(COMMENT_MAX_CHARACTERS), markdown: Markdown })
  .refine((input) => written(input).length <= COMMENT_MAX_CHARACTERS, {
    path: ['body'],
    message: `is longer than ${COMMENT_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
  });
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
      const found = page.find(({ body }) => body.split('\n').some((line) => line.trim() === hidden(mark)));
      if (found) return { ...created(input, found), response: { commentId: found.id }, recovered: true };
    }
    return undefined;
  },
});

/** On its own line: a reply that quotes the comment has `> ` before it. */
const marked = (body: string, mark: string) => `${body}\n\n${hidden(mark)}`;
const hidden = (mark: string) => `<!-- ${mark} -->`;

function created({ owner, repo }: CreateInput, { id, body }: z.infer<typeof Comment>) {
  const input = { owner, repo, commentId: id };
  const reversal: Reversal = { tool: 'github.comment.delete', input, expects: { comment: body } };
  return { output: { commentId: id }, reversal };
}

const DeleteInput = z.strictObject({ ...Repository, commentId: z.int().positive() });

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
    target: `github:${input.owner}/${input.repo}:comment:${input.commentId}`,
    fields: { commentId: input.commentId },
    after: { comment: null },
    key: writeKey(['gh', 'comment', 'delete', instance, `${input.owner}/${input.repo}`], {
      commentId: input.commentId,
    }),
  }),
  async before(input, access) {
    const reading = github(access, { method: 'GET', path: commentPath(input), responseSchema: Comment });
    const found = await reading.catch(unlessStatus(NOT_FOUND));
    return { comment: found?.body.body ?? null };
  },
  async perform(input, { access, before }) {
    if (before?.comment === null) {
      throw new TargetRefused(`GitHub has no comment ${input.commentId}: check its id`, { retryable: false });
    }
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

const commentPath = ({ owner, repo, commentId }: z.infer<typeof DeleteInput>) =>
  `/repos/${owner}/${repo}/issues/comments/${commentId}`;
