import { AxeBuilder } from '@axe-core/playwright';
import { expect } from 'vitest';
import type { TestHost } from '../local/test-host.ts';
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

/** What axe finds wrong, as `rule: element`. Empty: it found nothing. */
export async function accessibilityProblems({ page }: TestPage, rules?: string[]): Promise<string[]> {
  const axe = new AxeBuilder({ page });
  const { violations } = await (rules ? axe.withRules(rules) : axe).analyze();
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
