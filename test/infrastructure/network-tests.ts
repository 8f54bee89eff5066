import { describe, expect, it } from 'vitest';
import { idleBill } from '../../bench/bill/idle-stage.ts';
import { ORIGIN_HEADER } from '../../lambdas/entry/own-domain.ts';
import { apiDefinitions, httpRoutes } from '../../local/api-gateway/http-routes.ts';
import type { Assembly } from '../../local/template/synthesize.ts';
import type { ResolvedStack } from '../../local/template/template.ts';
import { LARGEST } from './limits/largest-stage.ts';
import { statementsOf } from './synthesized.ts';

interface Distribution {
  Aliases: string[];
  ViewerCertificate: Record<string, string>;
  WebACLId: string;
  CacheBehaviors: { PathPattern: string; TargetOriginId: string; AllowedMethods: string[] }[];
  Origins: { Id: string; DomainName: string; OriginCustomHeaders?: { HeaderName: string; HeaderValue: string }[] }[];
}

/** Domain name, firewall and VPC of a stage that has all of them. */
export function networkTests(synthesized: () => { assembly: Assembly; stack: ResolvedStack }): void {
  const { name } = LARGEST.domain;
  const stack = () => synthesized().stack;
  const distribution = () =>
    stack().ofType('AWS::CloudFront::Distribution')[0]?.properties.DistributionConfig as Distribution;
  const variablesOf = ({ properties }: { properties: Record<string, unknown> }) =>
    ((properties.Environment as { Variables?: Record<string, string> })?.Variables ?? {}) as Record<string, string>;
  const environments = () => stack().ofType('AWS::Lambda::Function').map(variablesOf);
  const functionRoles = () =>
    stack()
      .ofType('AWS::IAM::Role')
      .filter(({ properties }) => JSON.stringify(properties.AssumeRolePolicyDocument).includes('lambda.amazonaws.com'));
  const originOf = (path: string) => {
    const { CacheBehaviors, Origins } = distribution();
    const behavior = CacheBehaviors.find(({ PathPattern }) => PathPattern === path);
    return Origins.find(({ Id }) => Id === behavior?.TargetOriginId);
  };

  describe('a stage with a domain name of its own', () => {
    it('serves everything at that name, with TLS 1.2 or newer', () => {
      expect(distribution()).toMatchObject({
        Aliases: [name],
        ViewerCertificate: { AcmCertificateArn: LARGEST.domain.certificateArn, MinimumProtocolVersion: 'TLSv1.2_2021' },
      });
      const records = stack()
        .ofType('AWS::Route53::RecordSet')
        .map(({ properties }) => properties);
      expect(records.map(({ Name, Type }) => [Name, Type])).toEqual([
        [`${name}.`, 'A'],
        [`${name}.`, 'AAAA'],
      ]);
    });

    it('passes the path of the live feed to the WebSocket API', () => {
      expect(originOf('/live')?.DomainName).toBeTruthy();
      expect(originOf('/live')?.Id).not.toBe(originOf('/api/*')?.Id);
    });

    it('names it wherever people, programs and other systems read an address', () => {
      const { outputs } = stack();
      expect([outputs.Url, outputs.ConsoleUrl]).toEqual([`https://${name}`, `https://${name}`]);
      expect(outputs.KeysUrl).toBe(`https://${name}/.well-known/countersign-keys.json`);
      const addresses = ['OWN_URL', 'CONSOLE_URL', 'LIVE_URL', 'DOMAIN'].map((variable) => [
        variable,
        [...new Set(environments().flatMap((each) => each[variable] ?? []))],
      ]);
      expect(Object.fromEntries(addresses)).toEqual({
        OWN_URL: [`https://${name}`],
        CONSOLE_URL: [`https://${name}`],
        LIVE_URL: [`wss://${name}/live`],
        DOMAIN: [name],
      });
      const [headers] = stack().ofType('AWS::CloudFront::ResponseHeadersPolicy');
      expect(JSON.stringify(headers?.properties)).toContain(`wss://${name}/live`);
    });
  });

  it('the bill of a stage without traffic has its firewall and its VPC endpoints', () => {
    const usd = new Map(idleBill(stack()).map((each) => [each.line, each.usd]));
    expect(usd.get('domain names')).toBe(0);
    expect([usd.get('web ACLs of the firewall'), usd.get('rules of the firewall')]).toEqual([5, 4]);
    // Seven services in 6 subnets, at 7.20 USD.
    expect(usd.get('VPC endpoints, in each subnet')).toBeCloseTo(7 * 6 * 7.2);
  });

  describe('a stage with a firewall', () => {
    it('has its web ACL in front of the console, the API and the live feed', () => {
      expect(distribution().WebACLId).toBe(LARGEST.firewall.webAclArn);
    });

    it('lets every function that API Gateway invokes refuse requests that did not pass it', () => {
      const secret = originOf('/api/*')?.OriginCustomHeaders;
      expect(secret).toEqual([
        { HeaderName: ORIGIN_HEADER, HeaderValue: expect.stringMatching(/^\{\{resolve:secretsmanager:.*\}\}$/) },
      ]);
      expect(originOf('/live')?.OriginCustomHeaders).toEqual(secret);
      const invoked = apiDefinitions(stack())
        .flatMap(httpRoutes)
        .map(({ functionArn }) => stack().byArn(functionArn));
      const socket = stack()
        .ofType('AWS::Lambda::Function')
        .find(({ logicalId }) => /^LiveFeedConnections/.test(logicalId));
      expect(new Set(invoked).size).toBeGreaterThan(10);
      for (const each of [...invoked, socket]) {
        expect(each && variablesOf(each).ORIGIN_SECRET, each?.logicalId).toBe(secret?.[0]?.HeaderValue);
      }
    });
  });

  describe('a stage in a VPC', () => {
    it('runs every function in its subnets', () => {
      const { subnetIds: SubnetIds, securityGroupIds: SecurityGroupIds } = LARGEST.vpc;
      for (const { properties } of stack().ofType('AWS::Lambda::Function')) {
        expect(properties.VpcConfig).toEqual({ SubnetIds, SecurityGroupIds });
      }
    });

    it('lets Lambda connect them, and not their code', () => {
      expect(functionRoles().length).toBe(stack().ofType('AWS::Lambda::Function').length);
      for (const { properties, logicalId } of functionRoles()) {
        const policy = JSON.stringify(properties.Policies ?? []);
        expect(policy, logicalId).toContain('ec2:CreateNetworkInterface');
        expect(policy, logicalId).toContain('"Condition":{"Null":{"lambda:SourceFunctionArn":"false"}}');
      }
    });

    it('has an endpoint for every service that functions call, except where docs/stages.md names another way', () => {
      const ofFunctions = new Set(functionRoles().map(({ logicalId }) => logicalId));
      const called = statementsOf(stack())
        .filter(({ role }) => ofFunctions.has(role))
        .flatMap(({ actions }) => actions.map((each) => each.split(':')[0]));
      const endpoints = stack()
        .ofType('AWS::EC2::VPCEndpoint')
        .map(({ properties }) => String(properties.ServiceName).split('.').at(-1)?.replace('-runtime', ''));
      // Lambda itself writes logs and network interfaces. The live feed sends through a NAT gateway: no endpoint reaches it.
      const others = ['ec2', 'execute-api', 'logs'];
      const sorted = (services: (string | undefined)[]) => [...new Set(services)].sort();
      const advice = 'add the service to lib/vpc-endpoints.ts, and its price to the bill';
      expect(sorted(called), advice).toEqual(sorted([...endpoints, ...others]));
    });

    it('has them before the functions that CloudFormation waits for begin', () => {
      const resources = Object.entries(synthesized().assembly.template.Resources ?? {});
      const endpoints = resources.flatMap(([id, { Type }]) => (Type === 'AWS::EC2::VPCEndpoint' ? id : []));
      const waited = resources.filter(([, { Type }]) => Type.startsWith('Custom::'));
      expect(waited.length).toBe(2);
      for (const [id, resource] of waited) {
        expect((resource as { DependsOn?: string[] }).DependsOn, id).toEqual(expect.arrayContaining(endpoints));
      }
    });

    it('lets only its functions reach the endpoints, over HTTPS', () => {
      const rules = stack()
        .ofType('AWS::EC2::SecurityGroup')
        .flatMap(({ properties }) => properties.SecurityGroupIngress);
      expect(rules).toEqual(
        LARGEST.vpc.securityGroupIds.map((SourceSecurityGroupId) =>
          expect.objectContaining({ IpProtocol: 'tcp', FromPort: 443, ToPort: 443, SourceSecurityGroupId }),
        ),
      );
    });
  });
}
