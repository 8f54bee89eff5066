/** What the killed process and the process that checks its data share. */
import type { MachineOptions } from '../../../local/cloud/step-functions/step-functions.ts';

export const plainBucket = { name: 'plain', versioned: false };

export const objectRequest = (method: string, key: string, content = '') => ({
  method,
  path: `/${plainBucket.name}/${key}`,
  query: new URLSearchParams(),
  headers: {},
  body: Buffer.from(content),
});

export function approvalMachine(onToken: (token: string) => void): MachineOptions {
  return {
    logicalId: 'Approval',
    name: 'approval',
    arn: 'arn:aws:states:us-east-1:000000000000:stateMachine:approval',
    definition: {
      StartAt: 'Ask',
      States: {
        Ask: {
          Type: 'Task',
          Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
          Parameters: {
            FunctionName: 'arn:aws:lambda:us-east-1:000000000000:function:notify',
            Payload: { 'token.$': '$$.Task.Token' },
          },
          ResultPath: null,
          End: true,
        },
      },
    },
    invoke: async (_arn, event) => onToken((event as { token: string }).token),
  };
}
