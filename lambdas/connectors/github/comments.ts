import * as z from 'zod';
import { later } from '../../run/lease.ts';
import type { Reversal } from '../../run/receipt.ts';
import { Markdown, operation, writeKey } from '../connector.ts';
import { NOT_FOUND, TargetRefused } from '../exchange.ts';
import { github, githubPages, Repository } from './client.ts';
import { plainText } from './escape-markdown.ts';
import { IssueOf, issueName, issuePath } from './issue.ts';

/** Well within what GitHub takes; the receipt keeps the text, so that an undo can tell whether it is still ours. */
const COMMENT_MAX_CHARACTERS = 16_000;
/** GitHub's clock and ours may differ; looking a little further back costs nothing. */
const CLOCK_SKEW_MS = 60_000;

const Comment = z.object({ id: z.int(), body: z.string() });

const CreateInput = z
  .strictObject({ ...IssueOf, body: z.string().min(1).max(COMMENT_MAX_CHARACTERS), markdown: Markdown })
  .refine((input) => written(input).length <= COMMENT_MAX_CHARACTERS, {
    path: ['body'],
    message: `is longer than ${COMMENT_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
  });
type CreateInput = z.infer<typeof CreateInput>;

/** What somebody wrote elsewhere must not mention people or refer to issues in our name. */
const written = ({ body, markdown }: { body: string; markdown?: boolean }) => (markdown ? body : plainText(body));

export const createComment = operation({
  tool: 'github.comment.create',
  effect: 'probe',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: CreateInput,
  content: ['body'],
  answersWithIds: true,
  markdownField: 'body',
  propose: (input, instance) => ({
    target: `github:${issueName(input)}`,
    fields: { body: written(input) },
    key: writeKey(['gh', 'comment', 'create', instance, issueName(input)], { body: written(input) }),
  }),
  // People edit the text as it would be written: to escape it once more would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  async perform(input, { access, mark }) {
    const { status, answer } = await github(access, {
      method: 'POST',
      path: `${issuePath(input)}/comments`,
      body: { body: marked(written(input), mark) },
      answer: Comment,
    });
    return { ...created(input, answer), response: { status, commentId: answer.id } };
  },
  async probe(input, { access, mark, openSince }) {
    const path = `${issuePath(input)}/comments?since=${later(openSince, -CLOCK_SKEW_MS)}`;
    for await (const page of githubPages(access, path, z.array(Comment))) {
      const ours = page.find(({ body }) => body.split('\n').some((line) => line.trim() === hidden(mark)));
      if (ours) return { ...created(input, ours), response: { commentId: ours.id }, recovered: true };
    }
    return undefined;
  },
});

/** On a line of its own, which a reply that quotes the comment has not. */
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
  effect: 'natural',
  risk: 'medium',
  destructive: true,
  reversible: false,
  connection: 'github',
  input: DeleteInput,
  propose: (input, instance) => ({
    target: `github:${input.owner}/${input.repo}:comment:${input.commentId}`,
    fields: { commentId: input.commentId },
    after: { comment: null },
    key: writeKey(['gh', 'comment', 'delete', instance, `${input.owner}/${input.repo}`], {
      commentId: input.commentId,
    }),
  }),
  async before(input, access) {
    const reading = github(access, { method: 'GET', path: commentPath(input), answer: Comment });
    const found = await reading.catch(unlessNotFound);
    return { comment: found?.answer.body ?? null };
  },
  async perform(input, { access, before }) {
    if (before?.comment === null) {
      throw new TargetRefused(`GitHub shows no comment ${input.commentId}: check its id`, { retryable: false });
    }
    const deleting = github(access, { method: 'DELETE', path: commentPath(input), answer: z.undefined() });
    // It was there before: whoever deleted it since, it is gone.
    const deleted = await deleting.catch(unlessNotFound);
    return {
      output: { commentId: input.commentId },
      ...(before && { before }),
      reversal: { irreversible: 'a deleted comment cannot be put back as it was: its author, date and place are gone' },
      response: { status: deleted?.status ?? NOT_FOUND },
    };
  },
});

const commentPath = ({ owner, repo, commentId }: z.infer<typeof DeleteInput>) =>
  `/repos/${owner}/${repo}/issues/comments/${commentId}`;

function unlessNotFound(error: unknown): undefined {
  if (!(error instanceof TargetRefused) || error.status !== NOT_FOUND) throw error;
}
