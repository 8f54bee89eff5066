import { gzipSync } from 'node:zlib';
import type { HttpEvent } from '../../entry/http.ts';
import { DOCS_FILES, docsRoutes } from '../contract/docs.ts';
import { router } from '../router.ts';
import { CONTENT_SECURITY_POLICY, DOCS_PAGE, START_SCRIPT } from './docs-page.ts';

/** Reads files that are deployed with the function. */
export interface DeployedFiles {
  read(name: 'openapi.json' | 'swagger-ui.css' | 'swagger-ui-bundle.js'): Uint8Array;
}

/** Files change only with deployments. */
const CACHE = 'public, max-age=300';

/** The documentation of the API. Each file is read and compressed once. */
export function docsHandler({ read }: DeployedFiles) {
  const compressed = new Map<string, { plain: Uint8Array; gzip: Uint8Array }>();
  const file = (name: string, type: string, headers: HttpEvent['headers'], load: () => Uint8Array) => {
    const forms = compressed.get(name) ?? bothForms(load());
    compressed.set(name, forms);
    const accepts = /\bgzip\b/.test(headers['accept-encoding'] ?? '');
    return {
      status: 200 as const,
      body: accepts ? forms.gzip : forms.plain,
      headers: {
        'content-type': type,
        ...(accepts && { 'content-encoding': 'gzip' }),
        vary: 'accept-encoding',
        'cache-control': CACHE,
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      },
    };
  };
  return router<undefined, typeof docsRoutes>(docsRoutes, {
    getOpenApi: async (_ports, { headers }) =>
      file('openapi.json', 'application/json', headers, () => read('openapi.json')),
    getDocs: async (_ports, { headers }) =>
      file('page', 'text/html; charset=utf-8', headers, () => Buffer.from(DOCS_PAGE)),
    getDocsFile: async (_ports, { headers, params: { file: name } }) =>
      file(name, `${DOCS_FILES[name]}; charset=utf-8`, headers, () =>
        name === 'start.js' ? Buffer.from(START_SCRIPT) : read(name),
      ),
  });
}

const bothForms = (plain: Uint8Array) => ({ plain, gzip: gzipSync(plain) });
