import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { httpHandler } from '../../entry/http.ts';
import { docsHandler } from './docs.ts';

const { resolve } = createRequire(import.meta.url);

/** `lib/bundle-functions.ts` places these files beside the bundle. */
const handleDocs = docsHandler({
  read: (name) =>
    readFileSync(name === 'openapi.json' ? join(import.meta.dirname, name) : resolve(`swagger-ui-dist/${name}`)),
});

export const handler = httpHandler((event) => handleDocs(undefined, event));
