import { describe, expect, it } from 'vitest';
import { deploySite, headersOf, type SiteBucket, SiteRequest } from '../../lambdas/console/deploy-site.ts';

const request = (RequestType: string) =>
  SiteRequest.parse({
    RequestType,
    ResponseURL: 'https://cloudformation.example/response',
    ...{ StackId: 'stack', RequestId: 'request', LogicalResourceId: 'ConsoleFiles' },
    ResourceProperties: { ServiceToken: 'arn', Build: 'b1' },
  });

const file = (path: string) => ({ path, content: new TextEncoder().encode(path) });
const FILES = [file('index.html'), file('favicon.svg'), file('assets/main-1a2b.js'), file('assets/main-1a2b.css')];

class MemoryBucket implements SiteBucket {
  readonly stored = new Map<string, Parameters<SiteBucket['put']>[2]>();
  failsAt = '';
  async put(...[key, , headers]: Parameters<SiteBucket['put']>) {
    if (key === this.failsAt) throw new Error('AccessDenied');
    this.stored.set(key, headers);
  }
  async empty() {
    this.stored.clear();
  }
}

describe('deploying the console', () => {
  it('stores the page after the assets that it names, and only assets are cached for ever', async () => {
    const bucket = new MemoryBucket();
    expect(await deploySite(request('Create'), FILES, bucket)).toMatchObject({
      Status: 'SUCCESS',
      Data: { Files: '4' },
    });
    expect([...bucket.stored.keys()].at(-1)).toBe('index.html');
    expect(Object.fromEntries(bucket.stored)).toMatchObject({
      'index.html': { contentType: 'text/html; charset=utf-8', cacheControl: 'no-cache' },
      'favicon.svg': { contentType: 'image/svg+xml', cacheControl: 'no-cache' },
      'assets/main-1a2b.js': {
        contentType: 'text/javascript; charset=utf-8',
        cacheControl: 'public, max-age=31536000, immutable',
      },
    });
  });

  it('an update keeps the assets of the build before, which open pages still load', async () => {
    const bucket = new MemoryBucket();
    await deploySite(request('Create'), FILES, bucket);
    await deploySite(request('Update'), [file('index.html'), file('assets/main-9f9f.js')], bucket);
    expect([...bucket.stored.keys()]).toEqual(expect.arrayContaining(['assets/main-1a2b.js', 'assets/main-9f9f.js']));
  });

  it('a deletion empties the bucket, because CloudFormation deletes only empty ones', async () => {
    const bucket = new MemoryBucket();
    await deploySite(request('Create'), FILES, bucket);
    expect(await deploySite(request('Delete'), FILES, bucket)).toMatchObject({ Status: 'SUCCESS' });
    expect(bucket.stored.size).toBe(0);
  });

  it('a failed upload fails the deployment, with the page of the build before', async () => {
    const bucket = new MemoryBucket();
    bucket.failsAt = 'assets/main-1a2b.css';
    const response = await deploySite(request('Update'), FILES, bucket);
    expect(response).toMatchObject({ Status: 'FAILED', Reason: 'AccessDenied', PhysicalResourceId: 'console-site' });
    expect(bucket.stored.has('index.html')).toBe(false);
  });

  it('a file of an unknown kind is refused, because browsers would not run it', () => {
    expect(() => headersOf('assets/module.wasm')).toThrow('no content type');
  });
});
