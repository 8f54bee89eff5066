import * as z from 'zod';
import { loggedError } from '../../entry/logged-error.ts';
import { asPublished, type PublicKeys, stageKeys } from './published-keys.ts';

const Properties = z.object({ KeyId: z.string() });

/** The request of CloudFormation to create, update or delete the custom resource. */
export const StackEvent = z.object({
  RequestType: z.enum(['Create', 'Update', 'Delete']),
  ResponseURL: z.url(),
  StackId: z.string(),
  RequestId: z.string(),
  LogicalResourceId: z.string(),
  ResourceProperties: Properties,
});
export type StackEvent = z.infer<typeof StackEvent>;

/** The response to CloudFormation, which otherwise waits for an hour. */
export async function respondToStack(event: StackEvent, held: PublicKeys) {
  const { StackId, RequestId, LogicalResourceId, RequestType } = event;
  const { KeyId } = event.ResourceProperties;
  const request = { StackId, RequestId, LogicalResourceId, PhysicalResourceId: KeyId };
  if (RequestType === 'Delete') return { ...request, Status: 'SUCCESS' };
  try {
    const [key] = (await stageKeys([{ keyId: KeyId, validUntil: null }], held)).map(asPublished);
    return { ...request, Status: 'SUCCESS', Data: { Pem: key?.pem, Fingerprint: key?.fingerprint } };
  } catch (error) {
    return { ...request, Status: 'FAILED', Reason: loggedError(error).message };
  }
}
