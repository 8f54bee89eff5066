import * as z from 'zod';
import { type Access, operation, writeKey } from '../connector.ts';
import { NOT_FOUND, OutcomeUnknown, TargetRefused, unlessStatus } from '../target-errors.ts';
import { github } from './client.ts';
import { allOf, IssueOf, issueName, issuePath, presenceOf, reversalOf } from './issue.ts';

const LABEL_MAX_CHARACTERS = 50;
/** Each label is removed by its own call, all within the time of one step. */
export const LABELS_PER_WRITE_MAX = 20;
const LABELS_PER_ISSUE_MAX = 100;

const Labels = z.lazy(() => z.array(z.object({ name: z.string() })));
/** The label is the last path segment of its DELETE. With "." or ".." the path would mean all labels, or the issue. */
export const Label = z.lazy(() =>
  z
    .string()
    .min(1)
    .max(LABEL_MAX_CHARACTERS)
    .regex(/^(?!\.{1,2}$)/, 'GitHub cannot remove a label named "." or ".."; use another label'),
);
const LabelsInput = z.lazy(() =>
  z.strictObject({
    ...IssueOf,
    labels: z.array(Label).min(1).max(LABELS_PER_WRITE_MAX).describe('names of labels'),
  }),
);
type LabelsInput = z.infer<typeof LabelsInput>;

const OF_LABELS = {
  effect: 'natural',
  risk: 'low',
  reversible: true,
  connection: 'github',
  input: LabelsInput,
  content: ['labels'],
  before: readLabels,
} as const;

export const addLabels = operation({
  ...OF_LABELS,
  tool: 'github.labels.add',
  summary: 'Adds labels to an issue or pull request.',
  output: z.strictObject({ labels: z.array(z.string()).describe('all labels of the issue') }),
  propose: (input, instance) => proposal('add', input, instance),
  async perform(input, { access, before }) {
    const { labels } = input;
    const path = `${issuePath(input)}/labels`;
    const { status, body } = await github(access, { method: 'POST', path, body: { labels }, responseSchema: Labels });
    return {
      output: { labels: body.map(({ name }) => name) },
      ...(before && { before }),
      reversal: reversalOf(
        { tool: 'github.labels.remove', input, key: 'labels', names: labels, present: true },
        before,
      ),
      response: { status },
    };
  },
});

export const removeLabels = operation({
  ...OF_LABELS,
  tool: 'github.labels.remove',
  summary: 'Removes labels from an issue or pull request.',
  output: z.strictObject({ removed: z.array(z.string()) }),
  propose: (input, instance) => proposal('remove', input, instance),
  async perform(input, { access, before }) {
    const present = input.labels.filter((label) => before?.[label] !== false);
    const { removed, incomplete } = await removeEach(access, input, present);
    return {
      output: { removed },
      ...(before && { before }),
      ...(incomplete && { incomplete }),
      reversal: reversalOf({ tool: 'github.labels.add', input, key: 'labels', names: removed, present: false }, before),
      response: { removed: removed.length },
    };
  },
});

/** One call per label: if one is refused, the earlier labels stay removed. */
async function removeEach(access: Access, input: LabelsInput, labels: string[]) {
  for (const [done, label] of labels.entries()) {
    try {
      await removeLabel(access, input, label);
    } catch (error) {
      if (done === 0 || !(error instanceof TargetRefused)) throw error;
      const incomplete = `only ${done} of ${labels.length} labels were removed: ${error.message}`;
      if (error.retryable) throw new OutcomeUnknown(incomplete, error);
      return { removed: labels.slice(0, done), incomplete };
    }
  }
  return { removed: labels };
}

function proposal(verb: 'add' | 'remove', input: LabelsInput, instance: string) {
  const { labels } = input;
  return {
    target: `github:${issueName(input)}`,
    fields: { labels },
    after: allOf(labels, verb === 'add'),
    key: writeKey(['gh', 'labels', verb, instance, issueName(input)], [...labels].sort()),
  };
}

async function readLabels(input: LabelsInput, access: Access) {
  const path = `${issuePath(input)}/labels?per_page=${LABELS_PER_ISSUE_MAX}`;
  const { body } = await github(access, { method: 'GET', path, responseSchema: Labels });
  return presenceOf(
    input.labels,
    body.map(({ name }) => name),
  );
}

/** The issue existed when its labels were read, so 404 means that the label is already removed. */
async function removeLabel(access: Access, input: LabelsInput, label: string): Promise<void> {
  const path = `${issuePath(input)}/labels/${encodeURIComponent(label)}`;
  await github(access, { method: 'DELETE', path, responseSchema: Labels }).catch(unlessStatus(NOT_FOUND));
}
