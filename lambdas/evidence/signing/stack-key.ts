import * as z from 'zod';
import { stackRequest, stackResponse } from '../../entry/stack-request.ts';
import { asPublished, type PublicKeys, stageKeys } from './published-keys.ts';

/** A request to delete may be about a resource of an earlier version, with another form. */
const Properties = z.object({ KeyIds: z.array(z.string()).default([]) });

export const StackEvent = stackRequest(Properties);
export type StackEvent = z.infer<typeof StackEvent>;

export function respondToStack(event: StackEvent, held: PublicKeys) {
  return stackResponse(event, 'evidence-keys', async () => {
    if (event.RequestType === 'Delete') return {};
    const wanted = event.ResourceProperties.KeyIds.map((keyId) => ({ keyId, validUntil: null }));
    const published = (await stageKeys(wanted, held)).map(asPublished);
    return Object.fromEntries(
      published.flatMap(({ pem, fingerprint }, index) => [
        [`Pem${index}`, pem],
        [`Fingerprint${index}`, fingerprint],
      ]),
    );
  });
}
