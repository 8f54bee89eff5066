import { KMSClient } from '@aws-sdk/client-kms';
import { functionHandler } from '../../entry/middy-handler.ts';
import { KmsPublicKeys } from './kms-signer.ts';
import { respondToStack, StackEvent } from './stack-key.ts';

const held = new KmsPublicKeys(new KMSClient());

/** Returns the public keys for the outputs of the stack. */
export const handler = functionHandler<unknown, void>().handler(async (raw: unknown) => {
  const event = StackEvent.parse(raw);
  // As bytes, because text is sent with a content type, which the signature of the URL does not include.
  const body = Buffer.from(JSON.stringify(await respondToStack(event, held)));
  const { ok, status } = await fetch(event.ResponseURL, { method: 'PUT', body });
  if (!ok) throw new Error(`CloudFormation rejected the response (${status})`);
});
