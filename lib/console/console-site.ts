import { join } from 'node:path';
import { Aws, CfnOutput, CustomResource, Duration, Names, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import {
  AllowedMethods,
  type BehaviorOptions,
  CachePolicy,
  Distribution,
  Function as EdgeFunction,
  FunctionCode,
  FunctionEventType,
  FunctionRuntime,
  HeadersFrameOption,
  HeadersReferrerPolicy,
  HttpVersion,
  OriginRequestPolicy,
  PriceClass,
  ResponseHeadersPolicy,
  S3OriginAccessControl,
  SecurityPolicyProtocol,
  ViewerProtocolPolicy,
} from 'aws-cdk-lib/aws-cloudfront';
import { HttpOrigin, S3BucketOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import { CfnRecordSet } from 'aws-cdk-lib/aws-route53';
import { CloudFrontTarget } from 'aws-cdk-lib/aws-route53-targets';
import { Bucket, type CfnBucket, type IBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { CONTRACT } from '../../lambdas/api/contract/index.ts';
import type { RouteDefinition, Routes } from '../../lambdas/api/contract/route.ts';
import { DeploySiteEnvironment, SITE_FOLDER } from '../../lambdas/console/environment.ts';
import { ORIGIN_HEADER } from '../../lambdas/entry/own-domain.ts';
import type { CountersignHttpApi } from '../api/http-api.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { PRIVATE_BUCKET } from '../evidence/evidence-exports.ts';
import type { LiveFeed } from '../live-feed.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { StageConfig } from '../stage-config.ts';
import { buildConsole } from './build-console.ts';
import { contentSecurityPolicy, issuerOrigins } from './content-security-policy.ts';

const BUILD_RECORD = join(import.meta.dirname, '..', '..', '.build', 'console.json');
/** Uploads about a hundred small files. */
const DEPLOY_TIMEOUT = seconds(120);
/** A name in CloudFront has 64 characters. The longest name of a region has 14, and the longest id below 15. */
const GENERATED_NAME_MAX = 64 - 15 - 16;
const HSTS_MAX_AGE = Duration.days(365);
/**
 * CloudFront caches errors for 10 s, also where caching is off, and also with `no-store`. The next caller of the same path
 * would get the 404 of another tenant, or an error that is over.
 */
const ERRORS_NOT_CACHED = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504];

/**
 * Every page of the console is the same file; its script shows the page of the path. Assets and the few other files have
 * their own paths. Unlike an error page for 404, this never hides a 404 of the API.
 */
const PAGE_OF_EVERY_PATH = `function handler(event) {
  var request = event.request;
  if (!/^\\/(assets\\/.*|[a-z-]+\\.(svg|txt))$/.test(request.uri)) request.uri = '/index.html';
  return request;
}`;

interface ConsoleSiteProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  accessLogs: IBucket;
  liveFeed: LiveFeed | undefined;
}

/** The console: static files in S3, behind a CloudFront distribution that passes the paths of the API to the HTTP API. */
export class ConsoleSite extends Construct {
  readonly url: string;

  constructor(scope: Construct, id: string, props: ConsoleSiteProps) {
    super(scope, id);
    const bucket = new Bucket(this, 'Bucket', {
      ...PRIVATE_BUCKET,
      // The next deployment uploads the files again.
      removalPolicy: RemovalPolicy.DESTROY,
      serverAccessLogsBucket: props.accessLogs,
      serverAccessLogsPrefix: 'console/',
    });
    this.#deploy(bucket, props.bundles);
    const distribution = this.#distribution(bucket, props);
    const { domain } = props.config;
    this.url = `https://${domain?.name ?? distribution.distributionDomainName}`;
    new CfnOutput(Stack.of(this), 'ConsoleUrl', { value: this.url });
    if (domain) this.#pointTo(distribution, domain);
  }

  #pointTo(distribution: Distribution, { name, hostedZone }: NonNullable<StageConfig['domain']>): void {
    new CfnOutput(Stack.of(this), 'DomainTarget', { value: distribution.distributionDomainName });
    if (!hostedZone) return;
    const aliasTarget = {
      dnsName: distribution.distributionDomainName,
      hostedZoneId: CloudFrontTarget.CLOUDFRONT_ZONE_ID,
    };
    const record = { hostedZoneId: hostedZone.id, name: `${name}.`, aliasTarget };
    new CfnRecordSet(this, 'Ipv4', { ...record, type: 'A' });
    new CfnRecordSet(this, 'Ipv6', { ...record, type: 'AAAA' });
  }

  #deploy(bucket: Bucket, bundles: FunctionBundles): void {
    const entry = 'console/deploy-site';
    const build = buildConsole(join(bundles(entry), SITE_FOLDER), BUILD_RECORD);
    const deploy = new NodeFunction(this, 'Deploy', {
      bundles,
      entry,
      description: 'Uploads the files of the console',
      schema: DeploySiteEnvironment,
      environment: { SITE_BUCKET: bucket.bucketName },
      timeout: DEPLOY_TIMEOUT,
    });
    deploy.allow(['s3:ListBucket'], [bucket.bucketArn]);
    deploy.allow(['s3:PutObject', 's3:DeleteObject'], [bucket.arnForObjects('*')]);
    const bucketId = Stack.of(this).getLogicalId(bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/*]`,
      reason: 'The bucket contains nothing but the files of the console, and their names change with each build.',
    });
    new CustomResource(this, 'Files', {
      resourceType: 'Custom::ConsoleFiles',
      serviceToken: deploy.functionArn,
      properties: { Build: build },
    });
  }

  #distribution(bucket: Bucket, { config, httpApi, liveFeed }: ConsoleSiteProps): Distribution {
    const { domain, firewall } = config;
    const customHeaders = httpApi.originSecret ? { [ORIGIN_HEADER]: httpApi.originSecret } : undefined;
    const passTo = (host: string): BehaviorOptions => ({
      origin: new HttpOrigin(host, { customHeaders }),
      viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
      allowedMethods: AllowedMethods.ALLOW_ALL,
      cachePolicy: CachePolicy.CACHING_DISABLED,
      // API Gateway accepts only its own name in the header Host.
      originRequestPolicy: OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
    });
    const api = passTo(`${httpApi.api.apiId}.execute-api.${Aws.REGION}.${Aws.URL_SUFFIX}`);
    const live: Record<string, BehaviorOptions> = domain && liveFeed ? { [liveFeed.path]: passTo(liveFeed.host) } : {};
    const distribution = new Distribution(this, 'Distribution', {
      comment: `Countersign ${config.stage}: console and API`,
      defaultBehavior: {
        origin: S3BucketOrigin.withOriginAccessControl(bucket, { originAccessControl: this.#originAccess() }),
        viewerProtocolPolicy: ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
        cachePolicy: CachePolicy.CACHING_OPTIMIZED,
        responseHeadersPolicy: this.#headers(config, liveFeed ? [liveFeed.url] : []),
        functionAssociations: [{ function: this.#pageOfEveryPath(), eventType: FunctionEventType.VIEWER_REQUEST }],
      },
      additionalBehaviors: { ...Object.fromEntries(apiPathPatterns().map((pattern) => [pattern, api])), ...live },
      ...(domain && {
        domainNames: [domain.name],
        certificate: Certificate.fromCertificateArn(this, 'Certificate', domain.certificateArn),
        minimumProtocolVersion: SecurityPolicyProtocol.TLS_V1_2_2021,
      }),
      errorResponses: ERRORS_NOT_CACHED.map((httpStatus) => ({ httpStatus, ttl: seconds(0) })),
      webAclId: firewall?.webAclArn,
      httpVersion: HttpVersion.HTTP2_AND_3,
      priceClass: PriceClass.PRICE_CLASS_100,
    });
    Validations.of(distribution).acknowledge(
      { id: 'AwsSolutions-CFR1', reason: 'Operators work in every country. The API authenticates every request.' },
      { id: 'AwsSolutions-CFR3', reason: 'API Gateway logs the requests for data, S3 those for files.' },
    );
    if (!firewall) {
      Validations.of(distribution).acknowledge({
        id: 'AwsSolutions-CFR2',
        reason:
          'Static files that contain no data. The API has its own rate limits; the setting `firewall` adds a web ACL.',
      });
    }
    if (!domain) {
      Validations.of(distribution).acknowledge({
        id: 'AwsSolutions-CFR4',
        reason: 'CloudFront sets the TLS version of its own domain name; the setting `domain` brings another one.',
      });
    }
    return distribution;
  }

  #originAccess(): S3OriginAccessControl {
    return new S3OriginAccessControl(this, 'OriginAccess', { originAccessControlName: this.#nameOf('OriginAccess') });
  }

  /** CloudFront has one set of names for all regions of an account, and an account can have several stages in each. */
  #nameOf(id: string): string {
    return `${Aws.REGION}-${Names.uniqueResourceName(this, { maxLength: GENERATED_NAME_MAX })}-${id}`;
  }

  #pageOfEveryPath(): EdgeFunction {
    return new EdgeFunction(this, 'PageOfEveryPath', {
      functionName: this.#nameOf('PageOfEveryPath'),
      code: FunctionCode.fromInline(PAGE_OF_EVERY_PATH),
      runtime: FunctionRuntime.JS_2_0,
      comment: 'Returns the page of the console for every path without a file',
    });
  }

  #headers(config: StageConfig, connectsTo: readonly string[]): ResponseHeadersPolicy {
    return new ResponseHeadersPolicy(this, 'Headers', {
      responseHeadersPolicyName: this.#nameOf('Headers'),
      comment: `Countersign ${config.stage}: security headers of the console`,
      securityHeadersBehavior: {
        contentSecurityPolicy: {
          contentSecurityPolicy: contentSecurityPolicy([...issuerOrigins(config.issuers), ...connectsTo]),
          override: true,
        },
        contentTypeOptions: { override: true },
        frameOptions: { frameOption: HeadersFrameOption.DENY, override: true },
        referrerPolicy: { referrerPolicy: HeadersReferrerPolicy.NO_REFERRER, override: true },
        strictTransportSecurity: { accessControlMaxAge: HSTS_MAX_AGE, includeSubdomains: true, override: true },
      },
      customHeadersBehavior: {
        customHeaders: [
          { header: 'cross-origin-opener-policy', value: 'same-origin', override: true },
          { header: 'permissions-policy', value: 'camera=(), geolocation=(), microphone=()', override: true },
        ],
      },
    });
  }
}

/** The paths of the API as CloudFront patterns: `/api/*`, `/healthz`. All other paths are pages of the console. */
function apiPathPatterns(): string[] {
  const routes: RouteDefinition[] = Object.values<Routes>(CONTRACT).flatMap((each) => Object.values(each));
  const patterns = routes.map(({ path }) => {
    const [, first = '', ...rest] = path.split('/');
    return rest.length > 0 ? `/${first}/*` : `/${first}`;
  });
  return [...new Set(patterns)].sort();
}
