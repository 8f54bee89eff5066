import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startHost } from '../local/host/host.ts';
import { SAMPLES } from '../local/host/samples.ts';
import { synthesize } from '../local/template/synthesize.ts';
import { startBrowser, type TestPage } from '../test/browser/browser.ts';
import { goTo, inConsole } from '../test/browser/console-people.ts';
import { HostClient } from '../test/local/harness/host-client.ts';

/** Makes the pictures of the README from the sample events, on a new local host: `npm run screenshots`. */
const FOLDER = join(import.meta.dirname, 'screenshots');
const VIEWPORT = { width: 1200, height: 800 };
/** Of WebP. Text stays readable, and a picture has less than 60 KB. */
const QUALITY = 60;

class Pictures {
  readonly #host: HostClient;
  readonly #person: TestPage;

  constructor(host: HostClient, person: TestPage) {
    this.#host = host;
    this.#person = person;
  }

  /** Sends a sample event; returns the id of its run. */
  async send(sample: number): Promise<string> {
    const { file } = SAMPLES[sample] ?? SAMPLES[0];
    const { runIds } = await this.#host.ask<{ runIds: string[] }>('POST', '/_local/samples', { file, tenant: 'acme' });
    return runIds[0] ?? '';
  }

  async take(name: string, path: string, shows: string): Promise<void> {
    const { page } = this.#person;
    await goTo(this.#person, path);
    await page.getByText(shows).first().waitFor();
    await page.getByText(/^(Loading|Verifying) …$/).waitFor({ state: 'detached' });
    const devtools = await page.context().newCDPSession(page);
    const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
    await devtools.detach();
    await this.#person.screenshot(name);
    const bytes = Buffer.from(data, 'base64');
    writeFileSync(join(FOLDER, `${name}.webp`), bytes);
    console.log(`docs/screenshots/${name}.webp  ${Math.round(bytes.length / 1024)} KB`);
  }
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const dataFolder = mkdtempSync(join(tmpdir(), 'countersign-screenshots-'));
  const assembly = await synthesize(join(dataFolder, 'cdk.out'));
  const host = await startHost({ port: 0, dataFolder, log: () => {}, assembly });
  const browser = await startBrowser();
  try {
    const client = new HostClient(host.url);
    const ben = await inConsole(browser, client, 'Ben Okafor', '/', { viewport: VIEWPORT });
    const pictures = new Pictures(client, ben);
    const oscar = await inConsole(browser, client, 'Oscar Operator', '/', { viewport: VIEWPORT });
    await takeAll(client, pictures, new Pictures(client, oscar));
    const problems = [...ben.problems, ...oscar.problems];
    if (problems.length > 0) throw new Error(problems.join('\n'));
  } finally {
    await browser.stop();
    await host.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function takeAll(host: HostClient, pictures: Pictures, ofOperator: Pictures): Promise<void> {
  const labelled = await pictures.send(2);
  await host.waitForRun(labelled);
  const refused = await failedRun(host, pictures);
  const [first, second] = [await pictures.send(0), await pictures.send(1)];
  for (const runId of [first, second]) await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  const { steps } = await host.run(first);
  const approvalId = steps.find(({ status }) => status === 'waiting_approval')?.approvalId ?? '';
  await pictures.take('inbox', '/', 'Checkout database refuses connections');
  await pictures.take('approval', `/approvals/${approvalId}`, 'Why approval is required');
  await host.approve(first, 'local-approver2-key');
  await host.waitForRun(first);
  await ofOperator.take('run', `/runs/${first}?view=timeline`, 'Waiting for people');
  await ofOperator.take('failed-run', `/runs/${refused}`, 'What to do');
  await ofOperator.take('runs', '/runs', 'Checkout database refuses connections');
  await pictures.take('evidence', `/evidence/${first}`, 'Intact, and the run followed the rules');
}

/** A run whose write GitHub refuses. */
async function failedRun(host: HostClient, pictures: Pictures): Promise<string> {
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 422 });
  const runId = await pictures.send(3);
  await host.waitForRun(runId, ({ status }) => status === 'failed_terminal');
  return runId;
}

await main();
