import { describe, expect, it } from 'vitest';
import { PAGE_MAX } from '../../lambdas/api/contract/schemas.ts';
import { pageOf, readPage } from '../../lambdas/api/paging.ts';
import { assertResponseFits } from '../../lambdas/api/response-size.ts';
import { json, Problem } from '../../lambdas/entry/http.ts';
import { sourceFiles } from '../style/source.ts';
import { allRoutes } from './every-route.ts';

/** Lambda's limit for the whole response as JSON. */
const LAMBDA_MAX_BYTES = 6 * 1024 * 1024;
/** DynamoDB's limit for a row. */
const ROW_MAX_BYTES = 400 * 1024;
/** The character that grows most: one byte in a row, seven in a response, which escapes it twice. */
const largestRow = (index: number) => ({ name: String(index).padStart(3, '0'), text: '\u0001'.repeat(ROW_MAX_BYTES) });
const ROWS = Array.from({ length: 5 }, (_, index) => largestRow(index));
const PORTS = { cursorSecret: async () => 'secret' };

const sizeOf = (body: unknown): number => Buffer.byteLength(JSON.stringify(assertResponseFits(json(200, body))));

describe('a response', () => {
  it('with one row of the largest size fits', () => {
    expect(sizeOf(largestRow(0))).toBeLessThan(LAMBDA_MAX_BYTES);
  });

  it('with a page of the largest rows fits, and all pages together have every row once', async () => {
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await readPage(PORTS, 'acme/rows', { limit: PAGE_MAX, cursor }, (place) =>
        pageOf(ROWS, place, ({ name }) => name),
      );
      expect(sizeOf({ rows: page.items, nextCursor: page.nextCursor })).toBeLessThan(LAMBDA_MAX_BYTES);
      seen.push(...page.items.map(({ name }) => name));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(ROWS.map(({ name }) => name));
  });

  it('that does not fit is an error that says what to do, not a failed function', () => {
    const tooLarge = () => assertResponseFits(json(200, ROWS.slice(0, 3)));
    expect(tooLarge).toThrow(Problem);
    expect(tooLarge).toThrow(/use a smaller limit/);
  });
});

/** Lists that something else bounds. */
const NOT_PAGED: Record<string, string> = {
  listEvidenceKeys: 'the keys of the stage configuration',
  listSignIn: 'the issuers of the stage and the tenant',
  listWebhookSecrets: 'one entry for each source, without the secrets',
  listProfiles: 'four profiles, each with at most 1,000 patterns',
  listDeadLetters: 'the messages that one request receives from SQS',
  listSubscriptions: 'at most 50 destinations are notified of a run',
};
/** Ten runs for each request, of which only decisions that differ are returned. */
const REPLAY = 'lambdas/api/policies/policies.ts';

describe('every list', () => {
  it('of the contract returns pages, unless something else bounds it', () => {
    const lists = allRoutes.filter(({ name }) => name.startsWith('list'));
    const isPaged = (query: object | undefined) => query !== undefined && ('cursor' in query || 'since' in query);
    const unpaged = lists.filter(({ route: { query } }) => !isPaged(query?.shape)).map(({ name }) => name);
    expect(unpaged.toSorted()).toEqual(Object.keys(NOT_PAGED).toSorted());
  });

  it('cuts its pages to a size that fits', () => {
    const handlers = sourceFiles('lambdas/api/**/*.ts').filter(({ path }) => !path.endsWith('/paging.ts'));
    const reads = handlers.flatMap(({ path, text }) =>
      [...text.matchAll(/\breadPage\(/g)].map(({ index }) => ({ path, read: text.slice(index, index + 700) })),
    );
    expect(reads.length).toBeGreaterThan(8);
    const CUT =
      /\b(pageOf|pageByPlace|cutToFit|list\w*Approvals|readApprovals|approvalPage|readSteps|stepPage|actionsOfRun)\b/;
    expect(reads.filter(({ read }) => !CUT.test(read)).map(({ path }) => path)).toEqual([REPLAY]);
  });
});
