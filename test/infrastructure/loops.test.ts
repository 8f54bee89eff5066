import { describe, expect, it } from 'vitest';
import { STAGES, synthesized } from './synthesized.ts';

/** Which functions a message of each function can reach, over any number of queues and functions. */
function reachable(edges: ReadonlyMap<string, string[]>, from: string): Set<string> {
  const found = new Set<string>();
  const open = [...(edges.get(from) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(edges.get(next) ?? []));
  }
  return found;
}

describe.each(STAGES)('in stage %s', (stage) => {
  const { stack, properties, statements } = synthesized(stage);
  const functions = stack.ofType('AWS::Lambda::Function');
  const functionArn = (name: unknown) => functions.find(({ ref, arn }) => name === ref || name === arn)?.arn ?? '';

  const edges = new Map<string, string[]>();
  const edge = (from: string, to: string) => edges.set(from, [...(edges.get(from) ?? []), to]);
  for (const { arn, properties } of functions) {
    const role = stack.byArn(String(properties.Role))?.logicalId;
    const sends = statements.filter((each) => each.role === role && each.actions.includes('sqs:SendMessage'));
    for (const queue of sends.flatMap(({ resources }) => resources)) edge(arn, queue);
  }
  for (const { EventSourceArn, FunctionName } of properties('AWS::Lambda::EventSourceMapping')) {
    edge(String(EventSourceArn), functionArn(FunctionName));
  }

  it('Lambda allows loops of functions that send to a queue they consume, and stops all other loops', () => {
    const allowed = functions.filter(({ properties }) => properties.RecursiveLoop === 'Allow').map(({ arn }) => arn);
    const inLoops = functions.map(({ arn }) => arn).filter((arn) => reachable(edges, arn).has(arn));
    expect(inLoops.length).toBeGreaterThan(0);
    expect(allowed.sort()).toEqual(inLoops.sort());
  });

  it('the stage sets how many bundles are sealed concurrently', () => {
    const sealers = properties('AWS::Lambda::EventSourceMapping').filter(({ FunctionName }) =>
      functionArn(FunctionName).includes('EvidenceVaultSeal'),
    );
    expect(sealers.map(({ ScalingConfig }) => ScalingConfig)).toEqual([
      { MaximumConcurrency: stage === 'acme-prod' ? 20 : 10 },
    ]);
  });
});
