import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { invokeModel } from '../../../lambdas/connectors/model/invoke.ts';
import { LocalBedrock } from '../../../local/cloud/bedrock.ts';
import { STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { type SmallHost, startSmallHost } from '../core/small-host.ts';
import { functionWith, template } from '../core/small-template.ts';

const LITE = 'arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0';
const PROFILE = 'arn:aws:bedrock:us-east-1:000000000000:inference-profile/us.amazon.nova-lite-v1:0';

let host: SmallHost;
const bedrock = new LocalBedrock();
beforeAll(async () => {
  host = await startSmallHost({
    template: template({
      ...functionWith('Worker', [{ Action: 'bedrock:InvokeModel', Resource: LITE }]),
      ...functionWith('Profiled', [{ Action: 'bedrock:InvokeModel', Resource: [PROFILE, LITE] }]),
      ...functionWith('Halfway', [{ Action: 'bedrock:InvokeModel', Resource: PROFILE }]),
      ...functionWith('Other'),
    }),
    services: { rest: { bedrock } },
    withDynamoDb: false,
  });
});
afterEach(() => {
  bedrock.forget();
  host.faults.clear();
  host.requests.reset();
});
afterAll(() => host.stop());

/** As a step of a workflow asks, from the thread of this function. */
function ask(input: object, functionLogicalId = 'Worker') {
  const { endpoint, region, credentials } = host.as(functionLogicalId);
  const access = { baseUrl: endpoint, instance: region, credential: credentials };
  const parsed = invokeModel.parse({ prompt: 'Which group is it for?', ...input });
  return invokeModel.perform(parsed, { access, mark: 'm', openSince: STORY_BEGINS_AT });
}

describe('the local Bedrock, called as a step calls it', () => {
  it('returns the newest scripted answer that matches the model and the text', async () => {
    bedrock.script({ answer: 'by default' });
    bedrock.script({ contains: 'printer', answer: { group: 'hardware' } });
    bedrock.script({ model: 'amazon.nova-pro-v1:0', answer: 'another model' });
    expect((await ask({})).output).toMatchObject({ text: 'by default', stopReason: 'end_turn' });
    expect((await ask({ input: 'my printer burns', json: true })).output).toEqual({ group: 'hardware' });
  });

  it('uses a scripted answer as many times as it allows', async () => {
    bedrock.script({ answer: 'then' });
    bedrock.script({ answer: 'first', times: 1 });
    expect([(await ask({})).output, (await ask({})).output]).toMatchObject([{ text: 'first' }, { text: 'then' }]);
  });

  it('explains how to script an answer if none matches, in JSON if the prompt asks for JSON', async () => {
    expect((await ask({})).output).toMatchObject({ text: expect.stringContaining('POST /_local/models') });
    expect((await ask({ json: true })).output).toMatchObject({ answer: expect.stringContaining('/_local/models') });
  });

  it('counts tokens by length, and cuts the answer at maxTokens', async () => {
    bedrock.script({ answer: 'x'.repeat(100) });
    const { output, cost } = await ask({ prompt: 'y'.repeat(40), maxTokens: 10 });
    expect(output).toEqual({ text: 'x'.repeat(40), stopReason: 'max_tokens' });
    expect(cost).toMatchObject({ inputTokens: 10, outputTokens: 10 });
  });

  it('shows the questions', async () => {
    await ask({ system: 'Be brief.' });
    expect(bedrock.report().questions).toMatchObject([
      { model: 'amazon.nova-lite-v1:0', system: [{ text: 'Be brief.' }], messages: [{ role: 'user' }] },
    ]);
  });

  it('is counted like every other service', async () => {
    await ask({});
    expect(host.requests.report().functions).toEqual({ Worker: { bedrock: { Converse: 1 } } });
  });

  it('needs a grant for the model, and for a profile also for its model', async () => {
    const denied = { code: 'TARGET_REFUSED', retryable: false, message: expect.stringContaining('cdk.json') };
    await expect(ask({}, 'Other')).rejects.toMatchObject(denied);
    await expect(ask({ model: 'amazon.nova-pro-v1:0' })).rejects.toMatchObject(denied);
    const model = 'us.amazon.nova-lite-v1:0';
    await expect(ask({ model }, 'Halfway')).rejects.toMatchObject(denied);
    expect((await ask({ model }, 'Profiled')).output).toHaveProperty('text');
    expect(bedrock.report().questions).toHaveLength(1);
    expect(host.lines.join('\n')).toContain(`Other is not authorized to perform bedrock:InvokeModel on ${LITE}`);
  });

  it('can have throttling and error faults', async () => {
    host.faults.add({ service: 'bedrock', kind: 'throttle' });
    await expect(ask({})).rejects.toMatchObject({ retryable: true, message: expect.stringContaining('429') });
    host.faults.add({ service: 'bedrock', operation: 'Converse', kind: 'lost_reply' });
    await expect(ask({})).rejects.toMatchObject({ retryable: true });
  });

  it('refuses the requests that Bedrock refuses', async () => {
    const { endpoint, credentials } = host.as('host');
    const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/20260101/us-east-1/bedrock/aws4_request`;
    const post = async (path: string, body: string) => {
      const response = await fetch(`${endpoint}${path}`, { method: 'POST', headers: { authorization }, body });
      return [response.status, response.headers.get('x-amzn-errortype')];
    };
    for (const body of ['', '{"messages":[]}', '{"messages":[{"role":"system","content":[{"text":"x"}]}]}']) {
      expect(await post('/model/x/converse', body)).toEqual([400, 'ValidationException']);
    }
    expect(await post('/model/x/invoke', '{}')).toEqual([400, 'UnknownOperationException']);
  });
});
