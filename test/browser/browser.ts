import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { unpackChromium } from './unpack-chromium.ts';

/** Most containers forbid the sandbox of Chromium. No name is resolved, so no request leaves the machine. */
const ARGUMENTS = ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'];
/** Only ends what hangs: a busy machine is slow, and some of what pages show comes with the next sweep. */
const LIMIT_MS = 240_000;
const SCREENSHOTS = join(import.meta.dirname, '..', '..', '.build', 'screenshots');

/** One for each test file: `const browser = await startBrowser()` in `beforeAll`, `browser.stop()` in `afterAll`. */
export async function startBrowser(): Promise<TestBrowser> {
  const { executablePath, env } = await unpackChromium();
  return new TestBrowser(
    await chromium.launch({
      executablePath,
      args: ARGUMENTS,
      env: { ...(process.env as Record<string, string>), ...env },
    }),
  );
}

export class TestBrowser {
  readonly #browser: Browser;

  constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** A page of its own session (cookies, storage) on this host. Paths such as `/docs` are relative to the host. */
  async openPage(hostUrl: string, path: string, options: BrowserContextOptions = {}): Promise<TestPage> {
    // Without animations: a color that is about to change has a contrast of its own.
    const context = await this.#browser.newContext({ baseURL: hostUrl, reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(LIMIT_MS);
    const page = new TestPage(await context.newPage(), new URL(hostUrl));
    await page.watch();
    await page.page.goto(path);
    return page;
  }

  stop(): Promise<void> {
    return this.#browser.close();
  }
}

/** A page of Playwright, and everything that went wrong on it. */
export class TestPage {
  readonly page: Page;
  /** Console errors, uncaught errors, CSP violations, and requests that failed or went to another host. Normally empty. */
  readonly problems: string[] = [];
  /** Every request, as `GET /docs`. */
  readonly requests: string[] = [];
  readonly #host: URL;

  constructor(page: Page, host: URL) {
    this.page = page;
    this.#host = host;
  }

  async watch(): Promise<void> {
    const { page, problems } = this;
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
    page.on('request', (request) => {
      this.#checkHost(request.url());
      this.requests.push(`${request.method()} ${pathOf(request.url())}`);
    });
    page.on('websocket', (socket) => this.#checkHost(socket.url()));
    page.on('requestfailed', (request) =>
      problems.push(`failed: ${request.method()} ${request.url()}: ${request.failure()?.errorText}`),
    );
    page.on('response', (response) => {
      if (response.status() >= 400) {
        problems.push(`failed: ${response.request().method()} ${pathOf(response.url())}: ${response.status()}`);
      }
    });
    await page.exposeFunction('reportViolation', (violation: string) => problems.push(`CSP: ${violation}`));
    await page.addInitScript(REPORT_VIOLATIONS);
  }

  /** Saves `.build/screenshots/NAME.png`, for a person to look at. */
  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
  }

  close(): Promise<void> {
    return this.page.context().close();
  }

  #checkHost(url: string): void {
    const { protocol, host } = new URL(url);
    const staysInPage = protocol === 'data:' || protocol === 'blob:';
    if (!staysInPage && host !== this.#host.host) this.problems.push(`external: ${url}`);
  }
}

/** Runs in the page, before its scripts. */
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) => {
  reportViolation(event.effectiveDirective + ' blocks ' + (event.blockedURI || 'inline'));
});`;

const pathOf = (url: string) => {
  const { pathname, search } = new URL(url);
  return pathname + search;
};
