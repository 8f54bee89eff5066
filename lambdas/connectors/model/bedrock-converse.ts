import * as z from 'zod';
import { signedHeaders } from '../../entry/sign-aws-request.ts';
import { type Access, credentialOf } from '../connector.ts';
import { EXCHANGE_TIMEOUT_MS, exchange } from '../exchange.ts';
import { FIRST_SERVER_ERROR, type Head, retryAfterMs, TargetRefused } from '../target-errors.ts';

/** A step has time for two exchanges. A model call needs no other request, so it gets the time of both. */
const CONVERSE_TIMEOUT_MS = 2 * EXCHANGE_TIMEOUT_MS;
/** Timeout, model error, throttling: a later attempt may succeed. */
const TEMPORARY_STATUSES = [408, 424, 429];
const ERROR_NAME_MAX_CHARACTERS = 60;

const Credential = z.lazy(() =>
  z.object({
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    sessionToken: z.string().optional(),
  }),
);

const ConverseResponse = z.lazy(() =>
  z.object({
    output: z.object({ message: z.object({ content: z.array(z.object({ text: z.string().optional() })) }) }),
    stopReason: z.string(),
    usage: z.object({ inputTokens: z.int().nonnegative(), outputTokens: z.int().nonnegative() }),
  }),
);
export type ConverseResponse = z.infer<typeof ConverseResponse>;

export interface ConverseRequest {
  system: { text: string }[];
  messages: { role: 'user'; content: { text: string }[] }[];
  inferenceConfig: { maxTokens: number; temperature?: number };
}

/** Makes one signed call to Bedrock's Converse API. It writes nothing, so it may be repeated. */
export async function converse(access: Access, model: string, request: ConverseRequest): Promise<ConverseResponse> {
  const url = new URL(`/model/${encodeURIComponent(model)}/converse`, access.baseUrl);
  const { body } = await exchange({
    system: 'Bedrock',
    method: 'POST',
    url: url.href,
    headers: await signedHeaders({
      service: 'bedrock',
      region: access.instance,
      credentials: credentialOf(access, Credential, 'bedrock uses the role of the function; remove this connection'),
      url,
      body: JSON.stringify(request),
    }),
    body: request,
    readOnly: true,
    timeoutMs: CONVERSE_TIMEOUT_MS,
    errorFor: (head) => bedrockError(model, head),
    responseSchema: ConverseResponse,
  });
  return body;
}

function bedrockError(model: string, { status, header }: Head): TargetRefused {
  const name = header('x-amzn-errortype')?.split(':')[0]?.slice(0, ERROR_NAME_MAX_CHARACTERS) ?? '';
  const isTemporary =
    TEMPORARY_STATUSES.includes(status) || status >= FIRST_SERVER_ERROR || name === 'ThrottlingException';
  if (isTemporary) {
    const how = { retryable: true, retryAfterMs: retryAfterMs(header) };
    return new TargetRefused(`Bedrock is temporarily unavailable (${status} ${name})`, how);
  }
  if (name === 'AccessDeniedException') {
    const message = `this stage may not use ${model}: add it to "models" of the stage in cdk.json, and enable it in the account`;
    return new TargetRefused(message, { retryable: false });
  }
  return new TargetRefused(`Bedrock refused (${status} ${name})`, { retryable: false });
}
