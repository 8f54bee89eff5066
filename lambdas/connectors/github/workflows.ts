import * as z from 'zod';
import { operation, shortHash, writeKey } from '../connector.ts';
import { github, Repository } from './client.ts';

/** GitHub's limits. */
const INPUTS_MAX = 25;
const INPUTS_MAX_CHARACTERS = 65_535;
const REF_MAX_CHARACTERS = 255;

const DispatchInput = z.lazy(() =>
  z.strictObject({
    ...Repository,
    workflow: z
      .string()
      .regex(/^[A-Za-z0-9_.-]+\.ya?ml$|^[1-9]\d*$/, 'the file name of a workflow (deploy.yml), or its id')
      .describe('the file name of the GitHub workflow, or its id'),
    ref: z
      .string()
      .min(1)
      .max(REF_MAX_CHARACTERS)
      .regex(/^[^\s~^:?*[\\]+$/, 'a branch or a tag')
      .describe('the branch or tag to run it on'),
    inputs: z
      .record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()]))
      .refine((inputs) => Object.keys(inputs).length <= INPUTS_MAX, `at most ${INPUTS_MAX} inputs`)
      .refine(
        (inputs) => JSON.stringify(inputs).length <= INPUTS_MAX_CHARACTERS,
        `at most ${INPUTS_MAX_CHARACTERS} characters`,
      )
      .default({})
      .describe('values for the inputs of the GitHub workflow'),
  }),
);

/**
 * Starts a workflow of GitHub Actions. GitHub returns no id of the run and no trace of the request, so after a lost response
 * a person decides.
 */
export const dispatchWorkflow = operation({
  tool: 'github.workflow.dispatch',
  summary: 'Starts a workflow of GitHub Actions that has the trigger `workflow_dispatch`.',
  effect: 'opaque',
  risk: 'medium',
  reversible: false,
  connection: 'github',
  input: DispatchInput,
  output: z.strictObject({ workflow: z.string(), ref: z.string() }),
  content: ['inputs'],
  fixed: ['ref'],
  returnsOnlyIds: true,
  propose: ({ owner, repo, workflow, ref, inputs }, instance) => ({
    target: `github:${owner}/${repo}:workflow:${workflow}:${shortHash(ref)}`,
    fields: { ref, inputs },
    key: writeKey(['gh', 'workflow', 'dispatch', instance, `${owner}/${repo}`, workflow], { ref, inputs }),
  }),
  async perform({ owner, repo, workflow, ref, inputs }, { access }) {
    const { status } = await github(access, {
      method: 'POST',
      path: `/repos/${owner}/${repo}/actions/workflows/${workflow}/dispatches`,
      body: { ref, ...(Object.keys(inputs).length > 0 && { inputs }) },
      responseSchema: z.undefined(),
    });
    return {
      output: { workflow, ref },
      reversal: { irreversible: 'a started workflow has its own effects; cancel it on GitHub' },
      response: { status },
    };
  },
});
