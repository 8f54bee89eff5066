import * as z from 'zod';
import { loggedError } from './logged-error.ts';

/** The request of CloudFormation to create, update or delete a custom resource. */
export const stackRequest = <Properties extends z.ZodType>(properties: Properties) =>
  z.object({
    RequestType: z.enum(['Create', 'Update', 'Delete']),
    ResponseURL: z.url(),
    StackId: z.string(),
    RequestId: z.string(),
    LogicalResourceId: z.string(),
    PhysicalResourceId: z.string().optional(),
    ResourceProperties: properties,
  });

type StackRequest = z.infer<ReturnType<typeof stackRequest>>;

/** The response to CloudFormation: what the work returns, or why it failed. */
export async function stackResponse(
  request: StackRequest,
  physicalId: string,
  work: () => Promise<Record<string, string>>,
) {
  const { StackId, RequestId, LogicalResourceId, PhysicalResourceId = physicalId } = request;
  const about = { StackId, RequestId, LogicalResourceId, PhysicalResourceId };
  try {
    return { ...about, Status: 'SUCCESS', Data: await work() };
  } catch (error) {
    return { ...about, Status: 'FAILED', Reason: loggedError(error).message };
  }
}

/** CloudFormation waits for an hour if it gets no response. */
export async function sendToStack({ ResponseURL }: StackRequest, response: unknown): Promise<void> {
  // As bytes, because text is sent with a content type, which the signature of the URL does not include.
  const body = Buffer.from(JSON.stringify(response));
  const { ok, status, body: unread } = await fetch(ResponseURL, { method: 'PUT', body });
  await unread?.cancel();
  if (!ok) throw new Error(`CloudFormation rejected the response (${status})`);
}
