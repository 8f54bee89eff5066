import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join, normalize } from 'node:path';
import { runInNewContext } from 'node:vm';
import { headersOf } from '../../lambdas/console/deploy-site.ts';
import { SITE_FOLDER } from '../../lambdas/console/environment.ts';
import { wildcardMatches } from '../iam/conditions.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

interface Behavior {
  PathPattern?: string;
  FunctionAssociations?: { EventType: string; FunctionARN: string }[];
  ResponseHeadersPolicyId?: string;
}

interface DistributionConfig {
  DefaultCacheBehavior: Behavior;
  CacheBehaviors?: Behavior[];
}

type EdgeHandler = (event: { request: { uri: string } }) => { uri: string };

/**
 * The CloudFront distribution of the template: its default behavior with the files of the console, its edge function and
 * its response headers. The files are those that the custom resource uploads in AWS.
 */
export class ConsoleSite {
  readonly #folder: string;
  readonly #apiPatterns: string[];
  readonly #rewrite: EdgeHandler;
  readonly #headers: Record<string, string>;

  /** Undefined if the stage has no console. */
  static of(stack: ResolvedStack, codeFolder: (logicalId: string) => string): ConsoleSite | undefined {
    const [distribution] = stack.ofType('AWS::CloudFront::Distribution');
    return distribution && new ConsoleSite(distribution, stack, codeFolder);
  }

  constructor(distribution: ResolvedResource, stack: ResolvedStack, codeFolder: (logicalId: string) => string) {
    const config = distribution.properties.DistributionConfig as DistributionConfig;
    const [files] = stack.ofType('Custom::ConsoleFiles');
    const deploy = stack.byArn(String(files?.properties.ServiceToken));
    if (!deploy) throw new Error(`${distribution.logicalId}: the template does not deploy the files of the console`);
    this.#folder = join(codeFolder(deploy.logicalId), SITE_FOLDER);
    this.#apiPatterns = (config.CacheBehaviors ?? []).map(({ PathPattern = '' }) => PathPattern);
    this.#rewrite = edgeHandler(config.DefaultCacheBehavior, stack);
    this.#headers = responseHeaders(config.DefaultCacheBehavior, stack);
  }

  /** True for GET requests of paths that the distribution does not pass to the API. */
  serves(method: string | undefined, path: string): boolean {
    const isRead = method === 'GET' || method === 'HEAD';
    return isRead && !this.#apiPatterns.some((pattern) => wildcardMatches(pattern, path));
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const { uri } = this.#rewrite({ request: { uri: pathname } });
    const path = normalize(decodeURIComponent(uri)).replace(/^\/+/, '');
    const file = join(this.#folder, path);
    if (!file.startsWith(this.#folder) || !existsSync(file)) {
      // S3 responds with 403, because CloudFront may not list the bucket.
      response.writeHead(403, { ...this.#headers, 'content-type': 'text/plain' }).end('there is no such file\n');
      return;
    }
    const { contentType, cacheControl } = headersOf(path);
    response
      .writeHead(200, { ...this.#headers, 'content-type': contentType, 'cache-control': cacheControl })
      .end(request.method === 'HEAD' ? undefined : readFileSync(file));
  }
}

function edgeHandler({ FunctionAssociations = [] }: Behavior, stack: ResolvedStack): EdgeHandler {
  const [association, ...others] = FunctionAssociations;
  if (!association) return ({ request }) => request;
  if (others.length > 0 || association.EventType !== 'viewer-request') {
    throw new Error('the local host supports one edge function, for viewer-request');
  }
  const found = stack
    .ofType('AWS::CloudFront::Function')
    .find(({ attributes, ref }) => [attributes.FunctionARN, ref].includes(association.FunctionARN));
  return runInNewContext(`(${String(found?.properties.FunctionCode)})`) as EdgeHandler;
}

interface SecurityHeaders {
  ContentSecurityPolicy?: { ContentSecurityPolicy: string };
  ContentTypeOptions?: unknown;
  FrameOptions?: { FrameOption: string };
  ReferrerPolicy?: { ReferrerPolicy: string };
}

function responseHeaders({ ResponseHeadersPolicyId }: Behavior, stack: ResolvedStack): Record<string, string> {
  const policy = stack
    .ofType('AWS::CloudFront::ResponseHeadersPolicy')
    .find(({ ref }) => ref === ResponseHeadersPolicyId);
  const { SecurityHeadersConfig = {}, CustomHeadersConfig } = (policy?.properties.ResponseHeadersPolicyConfig ??
    {}) as {
    SecurityHeadersConfig?: SecurityHeaders;
    CustomHeadersConfig?: { Items: { Header: string; Value: string }[] };
  };
  const { ContentSecurityPolicy, ContentTypeOptions, FrameOptions, ReferrerPolicy } = SecurityHeadersConfig;
  // Without Strict-Transport-Security: this port has no TLS.
  return {
    ...(ContentSecurityPolicy && { 'content-security-policy': ContentSecurityPolicy.ContentSecurityPolicy }),
    ...(ContentTypeOptions !== undefined && { 'x-content-type-options': 'nosniff' }),
    ...(FrameOptions && { 'x-frame-options': FrameOptions.FrameOption }),
    ...(ReferrerPolicy && { 'referrer-policy': ReferrerPolicy.ReferrerPolicy }),
    ...Object.fromEntries((CustomHeadersConfig?.Items ?? []).map(({ Header, Value }) => [Header, Value])),
  };
}
