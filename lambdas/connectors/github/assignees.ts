import * as z from 'zod';
import { type Access, operation, writeKey } from '../connector.ts';
import { TargetRefused } from '../exchange.ts';
import { github } from './client.ts';
import { allOf, carried, changeBack, IssueOf, issueName, issuePath } from './issue.ts';

const ASSIGNEES_PER_ISSUE_MAX = 10;

const Assigned = z.object({ assignees: z.array(z.object({ login: z.string() })) });
const AssigneesInput = z.strictObject({
  ...IssueOf,
  assignees: z
    .array(z.string().regex(/^[A-Za-z0-9_-]+(\[bot\])?$/, 'a GitHub login'))
    .min(1)
    .max(ASSIGNEES_PER_ISSUE_MAX),
});
type AssigneesInput = z.infer<typeof AssigneesInput>;

export const addAssignees = assignment('add');
export const removeAssignees = assignment('remove');

function assignment(verb: 'add' | 'remove') {
  const present = verb === 'add';
  return operation({
    tool: `github.assignees.${verb}`,
    effect: 'natural',
    risk: 'low',
    reversible: true,
    connection: 'github',
    input: AssigneesInput,
    propose: (input, instance) => ({
      target: `github:${issueName(input)}`,
      fields: { assignees: input.assignees },
      after: allOf(input.assignees, present),
      key: writeKey(['gh', 'assignees', verb, instance, issueName(input)], [...input.assignees].sort()),
    }),
    async before(input, access) {
      const { answer } = await github(access, { method: 'GET', path: issuePath(input), answer: Assigned });
      return carried(input.assignees, loginsOf(answer));
    },
    async perform(input, { access, before }) {
      const { assignees } = input;
      const { status, now } = await write(access, present ? 'POST' : 'DELETE', input);
      const is = carried(assignees, now);
      const done = assignees.filter((login) => is[login] === present);
      const left = assignees.filter((login) => is[login] !== present);
      const unchanged = done.every((login) => before?.[login] === present);
      if (left.length > 0 && unchanged) throw new TargetRefused(ignored(left), { retryable: false });
      const tool = `github.assignees.${present ? 'remove' : 'add'}`;
      return {
        output: { assignees: now },
        ...(before && { before }),
        ...(left.length > 0 && { incomplete: ignored(left) }),
        reversal: changeBack({ tool, input, key: 'assignees', names: done, present }, before),
        response: { status },
      };
    },
  });
}

async function write(access: Access, method: 'POST' | 'DELETE', input: AssigneesInput) {
  const { assignees } = input;
  const path = `${issuePath(input)}/assignees`;
  const { status, answer } = await github(access, { method, path, body: { assignees }, answer: Assigned });
  return { status, now: loginsOf(answer) };
}

/** GitHub leaves out, and says nothing about it, whom it may not or cannot assign. */
const ignored = (left: string[]) =>
  `GitHub ignored ${left.join(', ')}: the credential needs push access, the people access to the repository, and an issue takes ${ASSIGNEES_PER_ISSUE_MAX}`;

const loginsOf = ({ assignees }: z.infer<typeof Assigned>) => assignees.map(({ login }) => login);
