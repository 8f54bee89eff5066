import type { Option } from '../commands/command.ts';

/** Options of commands that the operator of a stage runs with AWS credentials. */
export const OPERATOR_OPTIONS = {
  stage: {
    value: 'STAGE',
    description: 'a deployed stage, with AWS credentials of its account (default: the local host)',
  },
  region: { value: 'REGION', description: 'the AWS region of the stage (default: AWS_REGION)' },
} satisfies Record<string, Option>;
