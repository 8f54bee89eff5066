import { describe, expect, it } from 'vitest';
import { BadFaultRule, Faults, namesFunction } from '../../../local/aws/faults.ts';

const call = { functionLogicalId: 'StepWorkerFunction8A1B2C3D', service: 'dynamodb', operation: 'PutItem' };
const kindsOf = (faults: Faults, times: number) =>
  Array.from({ length: times }, () => faults.forCall(call).rule?.kind ?? '-').join(' ');

describe('a fault rule', () => {
  it('affects the nth matching call since it was added, as many times as it says', () => {
    const faults = new Faults();
    faults.forCall(call);
    faults.add({ kind: 'error', nth: 2, times: 2 });
    faults.forCall({ ...call, operation: 'GetItem' });
    expect(kindsOf(faults, 4)).toBe('error error - -');
    expect(faults.list()).toMatchObject([{ matched: 5, hits: 2 }]);
  });

  it('counts only the calls that match it', () => {
    const faults = new Faults();
    faults.add({ kind: 'lost_reply', service: 'dynamodb', operation: 'putitem', nth: 2 });
    for (const other of [{ operation: 'GetItem' }, { service: 'sqs' }])
      expect(faults.forCall({ ...call, ...other }).rule).toBeUndefined();
    expect(kindsOf(faults, 3)).toBe('- lost_reply -');
  });

  it('can be about a part of the ARN of a resource', () => {
    const faults = new Faults();
    faults.add({ kind: 'error', resource: '/artifacts/', times: 'always' });
    const of = (key: string) => ({ ...call, resources: () => [`arn:aws:s3:::bucket/${key}`] });
    expect(faults.forCall(of('artifacts/a')).rule?.kind).toBe('error');
    for (const other of [of('evidence/a'), call]) expect(faults.forCall(other).rule).toBeUndefined();
    expect(faults.list()).toMatchObject([{ matched: 1, hits: 1 }]);
  });

  it('affects every call, or random calls from a repeatable seed', () => {
    const always = new Faults();
    always.add({ kind: 'throttle', times: 'always' });
    expect(kindsOf(always, 3)).toBe('throttle throttle throttle');
    const drawn = [1, 2].map(() => {
      const chance = new Faults();
      chance.add({ kind: 'error', times: 'always', probability: 0.5, seed: 7 });
      return kindsOf(chance, 40);
    });
    expect(drawn[0]).toBe(drawn[1]);
    expect(drawn[0]).toMatch(/error/);
    expect(drawn[0]).toMatch(/-/);
  });

  it('adds its delay to the failure of another rule', () => {
    const faults = new Faults();
    faults.add({ kind: 'delay', delayMs: 5 });
    faults.add({ kind: 'delay', delayMs: 7 });
    faults.add({ kind: 'crash_after' });
    expect(faults.forCall(call)).toMatchObject({ delayMs: 12, rule: { kind: 'crash_after' } });
  });

  it('has conflicts only for DynamoDB', () => {
    const faults = new Faults();
    faults.add({ kind: 'conflict' });
    expect(faults.forCall({ ...call, service: 'sqs' }).rule).toBeUndefined();
    expect(faults.forCall(call).rule?.kind).toBe('conflict');
  });

  it('names a function by the start of its logical id or by its short name', () => {
    for (const name of ['stepworker', 'Step-Worker', 'worker', 'StepWorkerFunction8A1B2C3D', 'step']) {
      expect(namesFunction(name, call.functionLogicalId)).toBe(true);
    }
    for (const name of ['work', 'function', 'sweeper']) expect(namesFunction(name, call.functionLogicalId)).toBe(false);
  });
});

describe('fault rules', () => {
  it('are added, listed and cleared', () => {
    const faults = new Faults();
    expect(faults.add({ kind: 'throttle' })).toMatchObject({ id: 1, times: 1 });
    expect(faults.list()).toMatchObject([{ kind: 'throttle', hits: 0 }]);
    faults.clear();
    expect(faults.list()).toEqual([]);
  });

  it.each([
    [{ kind: 'explode' }, /kind/],
    [{ kind: 'error', nht: 2 }, /nht/],
    [{ kind: 'delay' }, /a delay requires delayMs/],
    [{ kind: 'conflict', service: 'sqs' }, /only dynamodb has conflicts/],
    [{ kind: 'error', nth: 0 }, /nth/],
    ['nonsense', /object/],
  ])('refuse %j and name the problem', (rule, reason) => {
    const add = () => new Faults().add(rule);
    expect(add).toThrow(BadFaultRule);
    expect(add).toThrow(reason);
  });
});
