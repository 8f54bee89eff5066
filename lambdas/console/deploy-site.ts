import * as z from 'zod';
import { stackRequest, stackResponse } from '../entry/stack-request.ts';

/** `Build` changes with the files, so that CloudFormation asks for an update. */
export const SiteRequest = stackRequest(z.object({ Build: z.string().optional() }));
export type SiteRequest = z.infer<typeof SiteRequest>;

export interface SiteFile {
  /** Relative to the folder of the site, with slashes: `assets/main-3f2a.js`. */
  path: string;
  content: Uint8Array;
}

export interface SiteBucket {
  put(key: string, content: Uint8Array, headers: { contentType: string; cacheControl: string }): Promise<void>;
  /** Deletes every file. CloudFormation cannot delete a bucket that has some. */
  empty(): Promise<void>;
}

const CONTENT_TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};

/** Names of assets contain a hash of the content. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
const REVALIDATE = 'no-cache';

export function headersOf(path: string): { contentType: string; cacheControl: string } {
  const ending = path.slice(path.lastIndexOf('.') + 1);
  const contentType = CONTENT_TYPES[ending];
  if (!contentType) throw new Error(`${path}: the ending .${ending} has no content type in deploy-site.ts`);
  return { contentType, cacheControl: path.startsWith('assets/') ? IMMUTABLE : REVALIDATE };
}

/** Uploads the site, or empties the bucket before its deletion. */
export function deploySite(request: SiteRequest, files: readonly SiteFile[], bucket: SiteBucket) {
  return stackResponse(request, 'console-site', async (): Promise<Record<string, string>> => {
    if (request.RequestType === 'Delete') {
      await bucket.empty();
      return {};
    }
    // Pages name assets, so they come last. Assets of earlier builds stay: open pages still load them.
    const isPage = ({ path }: SiteFile) => path.endsWith('.html');
    for (const { path, content } of [...files.filter((file) => !isPage(file)), ...files.filter(isPage)]) {
      await bucket.put(path, content, headersOf(path));
    }
    return { Files: String(files.length) };
  });
}
