import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { contentSecurityPolicy, issuerOrigins } from '../../lib/console/content-security-policy.ts';
import { wildcardMatches } from '../../local/iam/conditions.ts';
import { allRoutes } from '../api/every-route.ts';
import { STAGES, synthesized } from './synthesized.ts';

interface Behavior {
  PathPattern?: string;
  TargetOriginId: string;
  CachePolicyId: string;
  FunctionAssociations?: unknown[];
}

const CACHING_DISABLED = '4135ea2d-6df8-44a3-9df3-4b5a84be39ad';

describe.each(STAGES)('in stage %s', (stage) => {
  const { properties } = synthesized(stage);
  const config = properties('AWS::CloudFront::Distribution')[0]?.DistributionConfig as {
    CacheBehaviors: Behavior[];
    DefaultCacheBehavior: Behavior;
    CustomErrorResponses: { ErrorCode: number; ErrorCachingMinTTL: number; ResponsePagePath?: string }[];
  };
  const policy = properties('AWS::CloudFront::ResponseHeadersPolicy')[0]?.ResponseHeadersPolicyConfig as {
    SecurityHeadersConfig: { ContentSecurityPolicy: { ContentSecurityPolicy: string } };
  };
  const policyText = policy.SecurityHeadersConfig.ContentSecurityPolicy.ContentSecurityPolicy;

  it('the distribution passes every path of the API on, and caches nothing of it', () => {
    for (const { route } of allRoutes) {
      const behavior = config.CacheBehaviors.find(({ PathPattern = '' }) => wildcardMatches(PathPattern, route.path));
      expect(behavior, route.path).toMatchObject({ CachePolicyId: CACHING_DISABLED });
      expect(behavior?.TargetOriginId).not.toBe(config.DefaultCacheBehavior.TargetOriginId);
    }
  });

  it('paths without a file are the page of the console, and no error page hides a 404 of the API', () => {
    const handler = runInNewContext(`(${properties('AWS::CloudFront::Function')[0]?.FunctionCode})`);
    const uriOf = (uri: string) => handler({ request: { uri } }).uri;
    for (const page of ['/', '/runs', '/runs/run_1', '/agents/acme.payments-1_5f0c', '/sign-in', '/etc/../x.svg']) {
      expect(uriOf(page)).toBe('/index.html');
    }
    for (const file of ['/assets/main-1a2b.js', '/favicon.svg']) expect(uriOf(file)).toBe(file);
    expect(config.CustomErrorResponses.filter(({ ResponsePagePath }) => ResponsePagePath)).toEqual([]);
    expect(config.CacheBehaviors.flatMap(({ FunctionAssociations = [] }) => FunctionAssociations)).toEqual([]);
  });

  it('CloudFront caches no error: a 404 of one tenant is not the response to another', () => {
    const cached = config.CustomErrorResponses.filter(({ ErrorCachingMinTTL }) => ErrorCachingMinTTL !== 0);
    expect(cached).toEqual([]);
    const codes = config.CustomErrorResponses.map(({ ErrorCode }) => ErrorCode);
    expect(codes).toEqual(expect.arrayContaining([404, 414, 500, 501, 502, 503, 504]));
  });

  it('pages load nothing from elsewhere, run nothing inline and turn no text into HTML', () => {
    expect(policyText).not.toMatch(/unsafe|\*|https?:(?!\/\/)/);
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
      expect(policyText.split('; ')).toContain(part);
    }
    expect(policyText).toContain("require-trusted-types-for 'script'");
  });

  it('only the distribution reads the bucket', () => {
    const statements = properties('AWS::S3::BucketPolicy').flatMap(
      ({ PolicyDocument }) =>
        (PolicyDocument as { Statement: { Effect: string; Action: string; Principal: unknown; Condition?: object }[] })
          .Statement,
    );
    const reads = statements.filter(({ Effect, Action }) => Effect === 'Allow' && Action === 's3:GetObject');
    expect(reads).toEqual([
      expect.objectContaining({
        Principal: { Service: 'cloudfront.amazonaws.com' },
        Condition: { StringEquals: { 'AWS:SourceArn': expect.stringContaining(':distribution/') } },
      }),
    ]);
  });
});

it('pages may ask issuers for tokens, also one whose token endpoint has another host, as with Cognito', () => {
  const issuers = [
    { issuer: '{url}/_oidc' },
    { issuer: 'https://login.example.com/tenant' },
    {
      issuer: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab1',
      tokenEndpoint: 'https://acme.auth.eu-central-1.amazoncognito.com/oauth2/token',
    },
  ];
  const policy = contentSecurityPolicy(issuerOrigins(issuers)).split('; ');
  expect(policy).toContain(
    "connect-src 'self' https://login.example.com https://cognito-idp.eu-central-1.amazonaws.com https://acme.auth.eu-central-1.amazoncognito.com",
  );
});
