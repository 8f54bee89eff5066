import { describe, expect, it } from 'vitest';
import { parseDefinition } from '../../../local/cloud/step-functions/asl-definition.ts';

const machine = (First: object) => ({ StartAt: 'First', States: { First } });
const task = {
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke',
  Parameters: { FunctionName: 'work', Payload: { 'id.$': '$.id' } },
  ResultPath: null,
  End: true,
};

describe('the states language of the local host', () => {
  it.each([
    ['QueryLanguage', { QueryLanguage: 'JSONata', ...machine({ Type: 'Succeed' }) }],
    ['TimeoutSeconds', { TimeoutSeconds: 60, ...machine({ Type: 'Succeed' }) }],
    ['Assign', machine({ ...task, Assign: { a: 1 } })],
    ['Resource', machine({ ...task, Resource: 'arn:aws:states:::sqs:sendMessage' })],
    ['HeartbeatSeconds', machine({ ...task, HeartbeatSeconds: 60 })],
    ['ResultPath', machine({ ...task, ResultPath: '$.result' })],
    ['$.items[*]', machine({ ...task, Parameters: { FunctionName: 'work', Payload: { 'all.$': '$.items[*]' } } })],
    ['States.UUID', machine({ ...task, Parameters: { FunctionName: 'work', Payload: { 'id.$': 'States.UUID()' } } })],
    ['Retry', machine({ ...task, Retry: [{ ErrorEquals: ['States.Timeout'] }] })],
    ['Seconds', machine({ Type: 'Wait', Seconds: 60, End: true })],
    ['Type', machine({ Type: 'Choice', Choices: [] })],
    ['Nowhere', machine({ Type: 'Wait', TimestampPath: '$.at', Next: 'Nowhere' })],
    ['Nowhere', machine({ ...task, Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: null, Next: 'Nowhere' }] })],
    [
      'Assign',
      machine({ Type: 'Parallel', Branches: [machine({ ...task, Assign: {} })], ResultPath: null, End: true }),
    ],
  ])('refuses a definition with %s, which it would run differently from AWS', (what, definition) => {
    const check = () => parseDefinition('Flow', definition);
    expect(check).toThrow(/^Flow: /);
    expect(check).toThrow(what);
  });
});
