import { KMSClient } from '@aws-sdk/client-kms';
import { functionHandler } from '../../entry/middy-handler.ts';
import { KmsPublicKeys } from './kms-signer.ts';
import { answerStack, StackEvent } from './stack-key.ts';

const held = new KmsPublicKeys(new KMSClient());

/** The public half of a key, for the outputs of the stack. */
export const handler = functionHandler<unknown, void>().handler(async (raw: unknown) => {
  const event = StackEvent.parse(raw);
  // Bytes, since text would be sent with a content type, for which the URL is not signed.
  const body = Buffer.from(JSON.stringify(await answerStack(event, held)));
  const { ok, status } = await fetch(event.ResponseURL, { method: 'PUT', body });
  if (!ok) throw new Error(`CloudFormation did not take the answer (${status})`);
});
