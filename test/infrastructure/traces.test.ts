import { expect, it } from 'vitest';
import { synthesized } from './synthesized.ts';
import { tracesIn } from './traces-in.ts';

it('"off", the default: the sealer has no address, no secret and no grant', () => {
  const nothing = { url: undefined, secret: undefined, secrets: [], granted: [], link: undefined };
  expect(tracesIn(synthesized('acme-prod').stack)).toEqual(nothing);
});

it('"xray": the sealer may only add traces, and the API links the page of CloudWatch, unless the stage has its own', () => {
  const found = tracesIn(synthesized('local').stack);
  expect(found).toMatchObject({ secret: undefined, secrets: [], granted: ['xray:PutTraceSegments'] });
  expect(found.url).toMatch(/^https:\/\/xray\.[a-z0-9-]+\.amazonaws\.com\/v1\/traces$/);
  expect(found.link).toBe('/_local/traces?trace={traceId}');
});
