import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TestHost } from '../local/harness/test-host.ts';
import type { TestBrowser, TestPage } from './browser.ts';

type Options = Parameters<TestBrowser['openPage']>[2];

/** A person in the console: signs in at the local issuer and begins at this path. */
export async function inConsole(
  browser: TestBrowser,
  host: Pick<TestHost, 'url'>,
  person: string,
  path = '/',
  options: Options = {},
): Promise<TestPage> {
  const opened = await browser.openPage(host.url, path, { viewport: { width: 1280, height: 900 }, ...options });
  const { page } = opened;
  await page.getByRole('button', { name: 'Sign in to acme' }).click();
  await page.getByRole('button', { name: person }).click();
  await page.locator('.person').getByText(person).waitFor();
  return opened;
}

/** Goes to a page within the console, as a link does: without a reload. */
export async function goTo({ page }: TestPage, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
}

const TABS_MAX = 100;

/** Presses Tab until the focus is on the element with this name. */
export async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    await page.keyboard.press('Tab');
    const focused = String(
      await page.evaluate('(document.activeElement.ariaLabel ?? document.activeElement.innerText ?? "").trim()'),
    );
    if (typeof name === 'string' ? focused === name : name.test(focused)) return;
  }
  throw new Error(`Tab does not reach ${name}`);
}

/** What axe finds wrong, as `rule: element`. Empty: it found nothing. The page gets axe once, which takes a second. */
export async function accessibilityProblems({ page }: TestPage): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as axe.AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** The page fits into its width: nothing makes people scroll sideways. */
export async function expectToFit({ page }: TestPage): Promise<void> {
  const [content, shown] = await page
    .evaluate('[document.documentElement.scrollWidth, innerWidth]')
    .then((both) => both as [number, number]);
  expect(content).toBeLessThanOrEqual(shown);
}

/** Problems of a page, without requests that it gave up because somebody went on to another page. */
export const realProblems = ({ problems }: TestPage): string[] =>
  problems.filter((problem) => !problem.includes('net::ERR_ABORTED'));

/**
 * For tests that move the clock. A ticket of the live feed is valid for a minute: if the clock moves between a ticket and the
 * connection with it, the connection is refused, and the page gets another ticket.
 */
export const problemsWhileClockMoves = (page: TestPage): string[] =>
  realProblems(page).filter((problem) => !/^console: WebSocket connection .*HTTP Authentication failed/.test(problem));
