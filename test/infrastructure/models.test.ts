import { describe, expect, it } from 'vitest';
import { modelArn } from '../../lib/model-arn.ts';
import { STAGES, synthesized } from './synthesized.ts';

const NAMED: Record<(typeof STAGES)[number], string[]> = {
  local: ['arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0'],
  'acme-prod': [],
};

it.each(STAGES)('in stage %s only the worker may invoke models, and only those that the stage names', (stage) => {
  const granted = synthesized(stage).statements.filter(({ actions }) =>
    actions.some((action) => action.startsWith('bedrock:')),
  );
  expect(granted.flatMap(({ resources }) => resources)).toEqual(NAMED[stage]);
  for (const { role, actions } of granted) {
    expect([role.replace(/[0-9A-F]{8}$/, ''), actions]).toEqual(['WorkerStepRole', ['bedrock:InvokeModel']]);
  }
});

describe('the grant for a model', () => {
  const stack = { partition: 'aws', region: 'eu-west-1', account: '123456789012' };
  const elsewhere = 'arn:aws:bedrock:eu-central-1::foundation-model/amazon.nova-lite-v1:0';
  it.each([
    ['amazon.nova-lite-v1:0', 'arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0'],
    ['eu.amazon.nova-lite-v1:0', 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0'],
    [elsewhere, elsewhere],
  ])('%s', (model, arn) => {
    expect(modelArn(stack, model)).toBe(arn);
  });
});
