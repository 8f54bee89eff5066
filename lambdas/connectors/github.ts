import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { type Access, operation, writeKey } from './connector.ts';
import { exchange } from './http-exchange.ts';

const API_VERSION = '2022-11-28';
const LABEL_MAX_CHARACTERS = 50;
const LABELS_PER_ISSUE_MAX = 100;

const Credential = z.object({ token: z.string() });
const Labels = z.array(z.object({ name: z.string() }));
const RepositoryPart = z.string().regex(/^[A-Za-z0-9_.-]+$/, 'an owner or repository name');

const AddLabelsInput = z.strictObject({
  owner: RepositoryPart,
  repo: RepositoryPart,
  number: z.int().positive(),
  labels: z.array(z.string().min(1).max(LABEL_MAX_CHARACTERS)).min(1).max(100),
});

export const addLabels = operation({
  tool: 'github.labels.add',
  effect: 'natural',
  connection: 'github',
  input: AddLabelsInput,
  propose: ({ owner, repo, number, labels }) => ({
    target: `github:${owner}/${repo}#${number}`,
    fields: { labels },
    key: writeKey(['gh', 'labels', 'add', `${owner}/${repo}#${number}`], [...labels].sort()),
  }),
  async perform({ owner, repo, number, labels }, { access, firstAttempt }) {
    const path = `/repos/${owner}/${repo}/issues/${number}/labels`;
    const before = firstAttempt
      ? (
          await exchange({ ...request(access, 'GET', `${path}?per_page=${LABELS_PER_ISSUE_MAX}`), answer: Labels })
        ).answer.map(({ name }) => name)
      : undefined;
    const { status, answer } = await exchange({ ...request(access, 'POST', path), body: { labels }, answer: Labels });
    return {
      output: { labels: answer.map(({ name }) => name) },
      ...(before && { before: { labels: before } }),
      reversal: undo({ owner, repo, number, labels }, before),
      response: { status },
    };
  },
});

/** Only what this write added is ours to take away. */
function undo(input: z.infer<typeof AddLabelsInput>, before: string[] | undefined) {
  if (!before) return { irreversible: 'the labels before the write could not be read' };
  // GitHub tells labels apart without regard to case.
  const there = new Set(before.map((label) => label.toLowerCase()));
  const added = input.labels.filter((label) => !there.has(label.toLowerCase()));
  if (added.length === 0) return { irreversible: 'nothing was changed: the labels were already there' };
  return { tool: 'github.labels.remove', input: { ...input, labels: added } };
}

function request<Method extends 'GET' | 'POST'>({ baseUrl, credential }: Access, method: Method, path: string) {
  const parsed = Credential.safeParse(credential);
  if (!parsed.success) throw new CountersignError('CONNECTION_MISSING', 'the github credential needs "token"');
  return {
    system: 'GitHub',
    method,
    url: `${baseUrl}${path}`,
    headers: { authorization: `Bearer ${parsed.data.token}`, 'x-github-api-version': API_VERSION },
  };
}
