import * as z from 'zod';
import type { Reversal, TouchedState } from '../../run/receipt.ts';
import { type Access, operation, shortHash, writeKey } from '../connector.ts';
import { github, githubPages, Repository } from './client.ts';

const DESCRIPTION_MAX_CHARACTERS = 140;
const CONTEXT_MAX_CHARACTERS = 255;

const States = z.enum(['error', 'failure', 'pending', 'success']);
const Status = z.lazy(() =>
  z.object({
    context: z.string(),
    state: States,
    description: z.string().nullable(),
    target_url: z.string().nullable(),
  }),
);
const Combined = z.lazy(() => z.object({ statuses: z.array(Status) }));

const StatusInput = z.lazy(() =>
  z.strictObject({
    ...Repository,
    sha: z
      .string()
      .regex(/^[0-9a-f]{40}$/, 'a full commit SHA')
      .describe('the full SHA of the commit'),
    context: z.string().min(1).max(CONTEXT_MAX_CHARACTERS).describe('the name of the check'),
    state: States.describe('the result of the check'),
    description: z.string().max(DESCRIPTION_MAX_CHARACTERS).default('').describe('a short text beside the check'),
    targetUrl: z
      .union([z.url({ protocol: /^https?$/ }), z.literal('')])
      .default('')
      .describe('where people read more'),
  }),
);
type StatusInput = z.infer<typeof StatusInput>;

/** Each call adds a status, but only the newest one of a context counts, so a repeat changes nothing. */
export const setStatus = operation({
  tool: 'github.status.set',
  summary: 'Sets the status of a commit for one context.',
  effect: 'natural',
  risk: 'low',
  // Only an earlier status can be restored; the first status of a context cannot be removed.
  reversible: false,
  connection: 'github',
  input: StatusInput,
  output: z.strictObject({ sha: z.string(), context: z.string(), state: States }),
  content: ['state', 'description'],
  fixed: ['context'],
  propose: (input, instance) => {
    const commit = `${input.owner}/${input.repo}@${input.sha}`;
    const context = shortHash(input.context.toLowerCase());
    return {
      target: `github:${commit}:${context}`,
      fields: { context: input.context, ...displayed(input) },
      after: displayed(input),
      key: writeKey(['gh', 'status', instance, commit, context], displayed(input)),
    };
  },
  async before(input, access) {
    const now = await newest(access, input);
    return now ? displayed({ ...now, targetUrl: now.target_url }) : { state: null };
  },
  async perform(input, { access, before }) {
    const { owner, repo, sha, context, state, description, targetUrl } = input;
    const { status } = await github(access, {
      method: 'POST',
      path: `/repos/${owner}/${repo}/statuses/${sha}`,
      body: { context, state, description, ...(targetUrl && { target_url: targetUrl }) },
      responseSchema: Status,
    });
    return {
      output: { sha, context, state },
      ...(before && { before }),
      reversal: reversalOf(input, before),
      response: { status },
    };
  },
});

function reversalOf(input: StatusInput, before: TouchedState | undefined): Reversal {
  if (!before) return { irreversible: 'the status before the write could not be read' };
  if (before.state === null) return { irreversible: 'a first status cannot be removed, only replaced' };
  return { tool: 'github.status.set', input: { ...input, ...before }, expects: displayed(input) };
}

interface Displayed {
  state: string;
  description: string | null;
  targetUrl: string | null;
}

/** The parts of a status that GitHub displays. */
const displayed = ({ state, description, targetUrl }: Displayed) => ({
  state,
  description: description ?? '',
  targetUrl: targetUrl ?? '',
});

async function newest(access: Access, { owner, repo, sha, context }: StatusInput) {
  const path = `/repos/${owner}/${repo}/commits/${sha}/status`;
  for await (const page of githubPages(access, path, Combined)) {
    const found = page.statuses.find((status) => status.context.toLowerCase() === context.toLowerCase());
    if (found) return found;
  }
  return undefined;
}
