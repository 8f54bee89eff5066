import { join } from 'node:path';
import { defineConfig } from 'vite';

/** A running local host, for `npm run console`: Vite serves the sources and passes everything else on. */
const LOCAL_HOST = process.env.COUNTERSIGN_URL ?? 'http://127.0.0.1:4500';

const SMALL_PAGES =
  /console\/(automations|workflows|schedules|settings|policies|agents)\/|console\/evidence\/[a-z-]+\.tsx|console\/parts\/(action|submit|paged-table|code-editor|json-value|next-page|new-secret|text-diff|why-not|section)/;

const INBOX_AND_APPROVAL =
  /console\/(inbox|approval|parts\/(subject|run-status|table|copyable|draft|form))|lambdas\/approval\/texts|components\/(container|status-indicator)\//;

export default defineConfig({
  root: import.meta.dirname,
  // The verifier of evidence is written for Node.js.
  resolve: { alias: { 'node:crypto': join(import.meta.dirname, 'evidence', 'node-in-browser', 'crypto.ts') } },
  build: {
    target: 'es2023',
    // The content security policy allows neither inline scripts nor data URLs, except of images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          // Small pages, and the parts that only they use, are one chunk: 70 small files compress worse, by 25 KB in all.
          groups: [
            { name: 'definitions', test: SMALL_PAGES },
            // From the inbox people go to an approval.
            { name: 'inbox-page', test: INBOX_AND_APPROVAL },
          ],
        },
      },
      onLog(level, log, handler) {
        // Cloudscape marks its modules for React servers, which we do not use.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handler(level, log);
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/_sim', '/_local', '/_oidc', '/webhooks', '/docs', '/openapi.json', '/.well-known', '/healthz'].map(
        (path) => [path, { target: LOCAL_HOST, changeOrigin: true, ws: true }],
      ),
    ),
  },
});
