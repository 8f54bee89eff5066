import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildConsole } from '../lib/console/build-console.ts';
import { startBrowser, type TestBrowser } from '../test/browser/browser.ts';
import { goTo, inConsole } from '../test/browser/console-people.ts';
import { spawnHost } from '../test/local/harness/commands.ts';
import { CONSOLE_BUDGET_KB, consoleSizes } from './console-size.ts';

const TIMES = 9;
const ROWS = 50;

export interface ConsoleFigures {
  /** JavaScript with gzip, in KB, and the limits. */
  scriptsKb: { all: number; firstPage: number; budget: typeof CONSOLE_BUDGET_KB };
  stylesKb: number;
  buildMs: number;
  /** Of the inbox after a reload, which includes the redirects of the sign-in. */
  firstPaintMs: number;
  /** From the inbox to 50 rows of runs on the page. */
  listOf50Ms: number;
  /** `npm start` until it is ready: first without and then with what an earlier start has built and stored. */
  startMs: { first: number; warm: number };
}

/** Measures the console on a host that has at least 50 runs. Medians of 9, except for the build and `npm start`. */
export async function consoleFigures(url: string): Promise<ConsoleFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-bench-console-'));
  try {
    const beganMs = performance.now();
    buildConsole(join(folder, 'site'), join(folder, 'record.json'));
    const buildMs = Math.round(performance.now() - beganMs);
    const { allKb, firstPageKb, styleKb } = consoleSizes(join(folder, 'site'));
    const browser = await startBrowser();
    const shown = await inBrowser(browser, url).finally(() => browser.stop());
    const first = await startMs(join(folder, 'data'));
    const warm = await startMs(join(folder, 'data'));
    return {
      scriptsKb: { all: allKb, firstPage: firstPageKb, budget: CONSOLE_BUDGET_KB },
      stylesKb: styleKb,
      buildMs,
      ...shown,
      startMs: { first, warm },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function inBrowser(browser: TestBrowser, url: string) {
  const person = await inConsole(browser, { url }, 'Olivia Owner');
  const { page } = person;
  const paints: number[] = [];
  const lists: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    await page.goto(url);
    await page.locator('.person').getByText('Olivia Owner').waitFor();
    paints.push(Number(await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`)));
    const beganMs = performance.now();
    await goTo(person, '/runs');
    await page
      .locator('.list-table tbody tr')
      .nth(ROWS - 1)
      .waitFor();
    lists.push(performance.now() - beganMs);
  }
  return { firstPaintMs: median(paints), listOf50Ms: median(lists) };
}

async function startMs(data: string): Promise<number> {
  const beganMs = performance.now();
  const host = await spawnHost('--data', data, '--quiet', '--port', '0');
  const ms = Math.round(performance.now() - beganMs);
  await host.end('SIGTERM');
  return ms;
}

const median = (values: number[]): number =>
  Math.round(values.sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN);
