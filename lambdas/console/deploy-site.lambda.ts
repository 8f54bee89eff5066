import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { sendToStack } from '../entry/stack-request.ts';
import { deploySite, type SiteFile, SiteRequest } from './deploy-site.ts';
import { DeploySiteEnvironment, SITE_FOLDER } from './environment.ts';
import { S3SiteBucket } from './s3-site-bucket.ts';

const { SITE_BUCKET } = readEnvironment(DeploySiteEnvironment);
const bucket = new S3SiteBucket(new S3Client(), SITE_BUCKET);

/** Uploads the files of the console when the stack is deployed. */
export const handler = functionHandler<unknown, void>().handler(async (raw: unknown) => {
  const request = SiteRequest.parse(raw);
  await sendToStack(request, await deploySite(request, siteFiles(), bucket));
});

function siteFiles(): SiteFile[] {
  const folder = join(import.meta.dirname, SITE_FOLDER);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ path: file.slice(folder.length + 1), content: readFileSync(file) }));
}
