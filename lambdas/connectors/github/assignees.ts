import * as z from 'zod';
import { type Access, operation, writeKey } from '../connector.ts';
import { TargetRefused } from '../target-errors.ts';
import { github } from './client.ts';
import { allOf, IssueOf, issueName, issuePath, presenceOf, reversalOf } from './issue.ts';

const ASSIGNEES_PER_ISSUE_MAX = 10;

const Assigned = z.lazy(() => z.object({ assignees: z.array(z.object({ login: z.string() })) }));
const AssigneesInput = z.lazy(() =>
  z.strictObject({
    ...IssueOf,
    assignees: z
      .array(z.string().regex(/^[A-Za-z0-9_-]+(\[bot\])?$/, 'a GitHub login'))
      .min(1)
      .max(ASSIGNEES_PER_ISSUE_MAX)
      .describe('logins of people'),
  }),
);
type AssigneesInput = z.infer<typeof AssigneesInput>;

export const addAssignees = assignment('add');
export const removeAssignees = assignment('remove');

function assignment(verb: 'add' | 'remove') {
  const present = verb === 'add';
  return operation({
    tool: `github.assignees.${verb}`,
    summary: `${present ? 'Assigns' : 'Unassigns'} people ${present ? 'to' : 'from'} an issue or pull request.`,
    effect: 'natural',
    risk: 'low',
    reversible: true,
    connection: 'github',
    input: AssigneesInput,
    output: z.strictObject({ assignees: z.array(z.string()).describe('everyone who is assigned now') }),
    propose: (input, instance) => ({
      target: `github:${issueName(input)}`,
      fields: { assignees: input.assignees },
      after: allOf(input.assignees, present),
      key: writeKey(['gh', 'assignees', verb, instance, issueName(input)], [...input.assignees].sort()),
    }),
    async before(input, access) {
      const { body } = await github(access, { method: 'GET', path: issuePath(input), responseSchema: Assigned });
      return presenceOf(input.assignees, loginsOf(body));
    },
    async perform(input, { access, before }) {
      const { assignees } = input;
      const { status, now } = await write(access, present ? 'POST' : 'DELETE', input);
      const is = presenceOf(assignees, now);
      const done = assignees.filter((login) => is[login] === present);
      const left = assignees.filter((login) => is[login] !== present);
      const unchanged = done.every((login) => before?.[login] === present);
      if (left.length > 0 && unchanged) throw new TargetRefused(ignored(left), { retryable: false });
      const tool = `github.assignees.${present ? 'remove' : 'add'}`;
      return {
        output: { assignees: now },
        ...(before && { before }),
        ...(left.length > 0 && { incomplete: ignored(left) }),
        reversal: reversalOf({ tool, input, key: 'assignees', names: done, present }, before),
        response: { status },
      };
    },
  });
}

async function write(access: Access, method: 'POST' | 'DELETE', input: AssigneesInput) {
  const { assignees } = input;
  const path = `${issuePath(input)}/assignees`;
  const { status, body } = await github(access, { method, path, body: { assignees }, responseSchema: Assigned });
  return { status, now: loginsOf(body) };
}

/** GitHub reports success and skips people whom it cannot assign. */
const ignored = (left: string[]) =>
  `GitHub ignored ${left.join(', ')}: check that the credential has push access, that they have access to the repository, and that the issue has at most ${ASSIGNEES_PER_ISSUE_MAX} assignees`;

const loginsOf = ({ assignees }: z.infer<typeof Assigned>) => assignees.map(({ login }) => login);
