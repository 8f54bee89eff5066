import { describe, expect, it } from 'vitest';
import { Faults, namesFunction } from '../../../local/aws/faults.ts';

const call = { functionLogicalId: 'StepWorkerFunction8A1B2C3D', service: 'dynamodb', operation: 'PutItem' };
const kindsOf = (faults: Faults, times: number) =>
  Array.from({ length: times }, () => faults.strike(call).rule?.kind ?? '-').join(' ');

describe('a fault rule', () => {
  it('strikes the nth matching call since it was added, as often as it says', () => {
    const faults = new Faults();
    faults.strike(call);
    faults.add({ kind: 'error', nth: 2, times: 2 });
    faults.strike({ ...call, operation: 'GetItem' });
    expect(kindsOf(faults, 4)).toBe('error error - -');
    expect(faults.list()).toMatchObject([{ matched: 5, hits: 2 }]);
  });

  it('counts only the calls that match it', () => {
    const faults = new Faults();
    faults.add({ kind: 'lost_reply', service: 'dynamodb', operation: 'putitem', nth: 2 });
    for (const other of [{ operation: 'GetItem' }, { service: 'sqs' }])
      expect(faults.strike({ ...call, ...other }).rule).toBeUndefined();
    expect(kindsOf(faults, 3)).toBe('- lost_reply -');
  });

  it('strikes always, or by chance from a seed that repeats', () => {
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

  it('adds delays to the failure of another', () => {
    const faults = new Faults();
    faults.add({ kind: 'delay', delayMs: 5 });
    faults.add({ kind: 'delay', delayMs: 7 });
    faults.add({ kind: 'crash_after' });
    expect(faults.strike(call)).toMatchObject({ delayMs: 12, rule: { kind: 'crash_after' } });
  });

  it('conflicts only in DynamoDB', () => {
    const faults = new Faults();
    faults.add({ kind: 'conflict' });
    expect(faults.strike({ ...call, service: 'sqs' }).rule).toBeUndefined();
    expect(faults.strike(call).rule?.kind).toBe('conflict');
  });

  it('names a function by the beginning of its logical id or by its short name', () => {
    for (const name of ['stepworker', 'Step-Worker', 'worker', 'StepWorkerFunction8A1B2C3D', 'step']) {
      expect(namesFunction(name, call.functionLogicalId)).toBe(true);
    }
    for (const name of ['work', 'function', 'sweeper']) expect(namesFunction(name, call.functionLogicalId)).toBe(false);
  });
});

describe('/_local/faults', () => {
  it('adds, lists and clears', () => {
    const faults = new Faults();
    expect(faults.handle('POST', { kind: 'throttle' })).toMatchObject({
      status: 201,
      body: { rule: { id: 1, times: 1 } },
    });
    expect(faults.handle('GET', undefined)).toMatchObject({ body: { rules: [{ kind: 'throttle', hits: 0 }] } });
    expect(faults.handle('DELETE', undefined)).toEqual({ status: 200, body: { rules: [] } });
  });

  it.each([
    [{ kind: 'explode' }, /kind/],
    [{ kind: 'error', nht: 2 }, /nht/],
    [{ kind: 'delay' }, /a delay needs delayMs/],
    [{ kind: 'conflict', service: 'sqs' }, /only dynamodb has conflicts/],
    [{ kind: 'error', nth: 0 }, /nth/],
    ['nonsense', /object/],
  ])('refuses %j and says why', (rule, reason) => {
    const { status, body } = new Faults().handle('POST', rule);
    expect(status).toBe(400);
    expect((body as { message: string }).message).toMatch(reason);
  });
});
