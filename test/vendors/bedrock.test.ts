import { BedrockRuntimeClient, ConverseCommand, type ConverseCommandInput } from '@aws-sdk/client-bedrock-runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { invokeModel } from '../../lambdas/connectors/model/invoke.ts';
import { LocalBedrock } from '../../local/cloud/bedrock.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

const REGION = 'us-east-1';
const CREDENTIALS = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'x', sessionToken: 'y' };
const MODEL = 'us.amazon.nova-lite-v1:0';

interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

const bedrock = new LocalBedrock();
const answered = async ({ path, method, headers, body }: Sent) =>
  bedrock.handle({ path, method, headers, body: Buffer.from(body), query: new URLSearchParams() });

/** The request of the connector. */
let ours: Sent[];
beforeEach(() => {
  ours = [];
  bedrock.forget();
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const sent = { method: init.method ?? '', path: new URL(url).pathname, headers, body: String(init.body) };
    ours.push(sent);
    const { status, headers: head, body } = await answered(sent);
    return new Response(String(body), { status, headers: head });
  });
});
afterEach(() => vi.unstubAllGlobals());

const ask = (input: object) =>
  invokeModel.perform(invokeModel.parse({ model: MODEL, prompt: 'Which group?', ...input }), {
    access: { baseUrl: `https://bedrock-runtime.${REGION}.amazonaws.com`, instance: REGION, credential: CREDENTIALS },
    mark: 'm',
    openSince: STORY_BEGINS_AT,
  });

/** The same call with Amazon's client: its request, and what it reads from the response of the local Bedrock. */
async function askWithSdk(input: ConverseCommandInput) {
  const theirs: Sent[] = [];
  const client = new BedrockRuntimeClient({
    region: REGION,
    credentials: CREDENTIALS,
    requestHandler: {
      handle: async (request: Sent & { body: unknown }) => {
        const sent = { ...request, body: new TextDecoder().decode(request.body as unknown as Uint8Array) };
        theirs.push(sent);
        const { status, headers, body } = await answered(sent);
        return { response: { statusCode: status, headers, body: Buffer.from(body) } };
      },
    },
  });
  return { output: await client.send(new ConverseCommand(input)), sent: theirs[0] };
}

describe.each([
  ['a question', {}],
  [
    'a question about data, with all settings',
    { input: { a: [1] }, system: 'Be brief.', maxTokens: 9, temperature: 0.5 },
  ],
  ['a question for JSON', { json: true }],
])('%s', (_what, input) => {
  it('is sent like Amazon’s client sends it, and its response is read like that client reads it', async () => {
    bedrock.script({ answer: '{"group":"database"}' });
    const { output, cost } = await ask(input);
    const [sent] = ours;
    if (!sent) throw new Error('nothing was sent');
    const sdk = await askWithSdk({ modelId: MODEL, ...JSON.parse(sent.body) });
    expect({ method: sent.method, path: sent.path }).toEqual({ method: sdk.sent?.method, path: sdk.sent?.path });
    expect(JSON.parse(sent.body)).toEqual(JSON.parse(sdk.sent?.body ?? ''));
    expect(sent.headers['content-type']).toBe(sdk.sent?.headers['content-type']);
    expect(sent.headers.authorization?.split(',')[0]).toBe(sdk.sent?.headers.authorization?.split(',')[0]);
    const text = sdk.output.output?.message?.content?.[0]?.text ?? '';
    const { stopReason, usage } = sdk.output;
    expect(output).toMatchObject('json' in input ? JSON.parse(text) : { text, stopReason });
    expect(cost).toMatchObject({ inputTokens: usage?.inputTokens, outputTokens: usage?.outputTokens });
  });
});
