import { join } from 'node:path';
import { Aws, CfnOutput, CustomResource, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
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
  ViewerProtocolPolicy,
} from 'aws-cdk-lib/aws-cloudfront';
import { HttpOrigin, S3BucketOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import { Bucket, type CfnBucket, type IBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { CONTRACT } from '../lambdas/api/contract/index.ts';
import type { RouteDefinition, Routes } from '../lambdas/api/contract/route.ts';
import { DeploySiteEnvironment, SITE_FOLDER } from '../lambdas/console/environment.ts';
import { OWN_URL } from '../lambdas/entry/oidc-issuer.ts';
import { buildConsole } from './build-console.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { contentSecurityPolicy } from './content-security-policy.ts';
import { PRIVATE_BUCKET } from './evidence/evidence-exports.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { LiveFeed } from './live-feed.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

const BUILD_RECORD = join(import.meta.dirname, '..', '.build', 'console.json');
/** Uploads about a hundred small files. */
const DEPLOY_TIMEOUT = seconds(120);
const HSTS_MAX_AGE = Duration.days(365);

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
    this.url = `https://${distribution.distributionDomainName}`;
    new CfnOutput(Stack.of(this), 'ConsoleUrl', { value: this.url });
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
    const { apiId } = httpApi.api;
    const api: BehaviorOptions = {
      origin: new HttpOrigin(`${apiId}.execute-api.${Aws.REGION}.${Aws.URL_SUFFIX}`),
      viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
      allowedMethods: AllowedMethods.ALLOW_ALL,
      cachePolicy: CachePolicy.CACHING_DISABLED,
      // API Gateway accepts only its own name in the header Host.
      originRequestPolicy: OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
    };
    const distribution = new Distribution(this, 'Distribution', {
      comment: `Countersign ${config.stage}: console and API`,
      defaultBehavior: {
        origin: S3BucketOrigin.withOriginAccessControl(bucket),
        viewerProtocolPolicy: ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
        cachePolicy: CachePolicy.CACHING_OPTIMIZED,
        responseHeadersPolicy: this.#headers(config, liveFeed ? [liveFeed.url] : []),
        functionAssociations: [{ function: this.#pageOfEveryPath(), eventType: FunctionEventType.VIEWER_REQUEST }],
      },
      additionalBehaviors: Object.fromEntries(apiPathPatterns().map((pattern) => [pattern, api])),
      httpVersion: HttpVersion.HTTP2_AND_3,
      priceClass: PriceClass.PRICE_CLASS_100,
    });
    Validations.of(distribution).acknowledge(
      { id: 'AwsSolutions-CFR1', reason: 'Operators work in every country. The API authenticates every request.' },
      {
        id: 'AwsSolutions-CFR2',
        reason:
          'Static files that contain no data. The API has its own rate limits; add a firewall if your rules ask for it.',
      },
      { id: 'AwsSolutions-CFR3', reason: 'API Gateway logs the requests for data, S3 those for files.' },
      {
        id: 'AwsSolutions-CFR4',
        reason: 'CloudFront sets the TLS version of its own domain name; another one needs a certificate.',
      },
    );
    return distribution;
  }

  #pageOfEveryPath(): EdgeFunction {
    return new EdgeFunction(this, 'PageOfEveryPath', {
      code: FunctionCode.fromInline(PAGE_OF_EVERY_PATH),
      runtime: FunctionRuntime.JS_2_0,
      comment: 'Returns the page of the console for every path without a file',
    });
  }

  #headers(config: StageConfig, connectsTo: readonly string[]): ResponseHeadersPolicy {
    const issuers = config.issuers.filter(({ issuer }) => !issuer.startsWith(OWN_URL)).map(({ issuer }) => issuer);
    const origins = issuers.map((issuer) => new URL(issuer).origin);
    return new ResponseHeadersPolicy(this, 'Headers', {
      comment: `Countersign ${config.stage}: security headers of the console`,
      securityHeadersBehavior: {
        contentSecurityPolicy: {
          contentSecurityPolicy: contentSecurityPolicy([...origins, ...connectsTo]),
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
