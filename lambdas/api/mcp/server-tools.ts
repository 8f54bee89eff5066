import type { OfferedTool } from './offered-tools.ts';

/** The only tool that is no operation: it reads the outcome of a call. */
export const GET_RESULT = 'get_action_result';

export const getResultTool: OfferedTool = {
  name: GET_RESULT,
  description: 'Returns the result of an earlier call that was pending or waited for an approval. Calls nothing again.',
  inputSchema: {
    type: 'object',
    properties: { actionId: { type: 'string', maxLength: 100, description: 'From the result of the call' } },
    required: ['actionId'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};
