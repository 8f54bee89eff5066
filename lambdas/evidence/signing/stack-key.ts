import * as z from 'zod';
import { loggedError } from '../../entry/logged-error.ts';
import { asPublished, type PublicKeys, stageKeys } from './published-keys.ts';

/** A request to delete may be about a resource of an earlier version, with another form. */
const Properties = z.object({ KeyIds: z.array(z.string()).default([]) });

/** The request of CloudFormation to create, update or delete the custom resource. */
export const StackEvent = z.object({
  RequestType: z.enum(['Create', 'Update', 'Delete']),
  ResponseURL: z.url(),
  StackId: z.string(),
  RequestId: z.string(),
  LogicalResourceId: z.string(),
  PhysicalResourceId: z.string().optional(),
  ResourceProperties: Properties,
});
export type StackEvent = z.infer<typeof StackEvent>;

/** The response to CloudFormation, which otherwise waits for an hour. */
export async function respondToStack(event: StackEvent, held: PublicKeys) {
  const { StackId, RequestId, LogicalResourceId, RequestType } = event;
  const { PhysicalResourceId = 'evidence-keys' } = event;
  const request = { StackId, RequestId, LogicalResourceId, PhysicalResourceId };
  if (RequestType === 'Delete') return { ...request, Status: 'SUCCESS' };
  try {
    const wanted = event.ResourceProperties.KeyIds.map((keyId) => ({ keyId, validUntil: null }));
    const published = (await stageKeys(wanted, held)).map(asPublished);
    const Data = Object.fromEntries(
      published.flatMap(({ pem, fingerprint }, index) => [
        [`Pem${index}`, pem],
        [`Fingerprint${index}`, fingerprint],
      ]),
    );
    return { ...request, Status: 'SUCCESS', Data };
  } catch (error) {
    return { ...request, Status: 'FAILED', Reason: loggedError(error).message };
  }
}
