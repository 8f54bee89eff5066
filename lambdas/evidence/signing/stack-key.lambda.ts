import { KMSClient } from '@aws-sdk/client-kms';
import { functionHandler } from '../../entry/middy-handler.ts';
import { sendToStack } from '../../entry/stack-request.ts';
import { KmsPublicKeys } from './kms-signer.ts';
import { respondToStack, StackEvent } from './stack-key.ts';

const held = new KmsPublicKeys(new KMSClient());

/** Returns the public keys for the outputs of the stack. */
export const handler = functionHandler<unknown, void>().handler(async (raw: unknown) => {
  const event = StackEvent.parse(raw);
  await sendToStack(event, await respondToStack(event, held));
});
