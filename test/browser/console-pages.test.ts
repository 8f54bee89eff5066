import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, enrolledAgent, type StoryAgent } from '../local/harness/agent-story.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';
import {
  accessibilityProblems,
  expectToFit,
  goTo,
  inConsole,
  problemsWhileClockMoves,
  realProblems,
} from './console-people.ts';

let host: TestHost;
let browser: TestBrowser;
let agent: StoryAgent;
let runId: string;
let title: string;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  agent = await enrolledAgent(host, 'demo-1');
  runId = await host.openIssue(7);
  await host.waitForRun(runId);
  title = (await host.api<{ title: string }>(`/runs/${runId}`)).body.title;
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

const HOSTILE = '<img src=x onerror=alert(1)> \u202egnihsarc';

const workflow = (name: string, note: string) => `name: ${name}
description: ${note}
inputs:
  text: { type: string, required: true, description: What to note }
  count: { type: integer, default: 1 }
steps:
  - id: note
    tool: transform
    with: { text: "{% inputs.text %}" }
`;

describe('an author', () => {
  let author: TestPage;
  beforeAll(async () => {
    author = await inConsole(browser, host, 'Olivia Owner', '/new-workflow');
  });
  afterAll(() => author.close());

  it('sees what is wrong while typing, and publishes a workflow and a second version of it', async () => {
    const { page } = author;
    const editor = page.getByRole('textbox', { name: 'Workflow (YAML)' });
    await editor.fill(workflow('take-a-note', 'Takes a note').replace('steps:', 'stepz:'));
    await page.getByRole('button', { name: 'Line 6' }).waitFor();
    await page.getByText('did you mean "steps"?').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Publish the workflow' }).isDisabled()).toBe(true);

    await editor.fill(workflow('take-a-note', 'Takes a note'));
    await page.getByText('The workflow is valid.').waitFor();
    await page.getByRole('button', { name: 'Publish the workflow' }).click();
    await page.getByText('Version 1 of take-a-note is published.').waitFor();

    await goTo(author, '/workflows/take-a-note/edit');
    await editor.fill(workflow('take-a-note', 'Takes another note'));
    await page.getByRole('region', { name: 'Changes', exact: true }).getByText('Takes another note').waitFor();
    await page.getByRole('button', { name: 'Publish version 2' }).click();
    await page.getByText('Version 2 of take-a-note is published.').waitFor();
    const { body } = await host.api<{ source: string }>('/workflows/take-a-note/versions/2');
    expect(body.source).toBe(workflow('take-a-note', 'Takes another note'));

    await goTo(author, '/workflows/take-a-note/versions');
    const diff = page.getByRole('region', { name: 'Changes', exact: true });
    await diff.getByText('description: Takes a note', { exact: true }).waitFor();
    await diff.getByText('description: Takes another note', { exact: true }).waitFor();
  });

  it('simulates a file without writing anything', async () => {
    const { page } = author;
    await goTo(author, '/workflows/take-a-note/edit');
    await page.getByRole('textbox', { name: 'Inputs, as JSON' }).fill('{"text": "hello"}');
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByText('The run would make all its writes without an approval. 0 writes').waitFor();
  });

  it('starts a run with a form made from the inputs of the workflow', async () => {
    const { page } = author;
    await goTo(author, '/workflows/take-a-note/run');
    await page.getByRole('textbox', { name: 'text', exact: true }).fill('Hello');
    await page.getByRole('spinbutton', { name: 'count' }).fill('3');
    await page.getByRole('textbox', { name: 'Title' }).fill('A note');
    await page.getByText('countersign runs start take-a-note --input text=Hello --input count=3').waitFor();
    await page.getByRole('button', { name: 'Start a run' }).click();
    await page.waitForURL(/\/runs\/run_/);
    const started = page.url().split('/').at(-1) ?? '';
    const run = await host.waitForRun(started, ({ status }) => status === 'succeeded');
    expect(run).toMatchObject({ title: 'A note', workflow: { name: 'take-a-note', version: 2 } });
    expect(run.steps[0]).toMatchObject({ output: { text: 'Hello' } });
  });

  it('disables an automation after reading what that does', async () => {
    const { page } = author;
    await goTo(author, '/automations/reopened-bug');
    await page.getByRole('button', { name: 'Disable the automation' }).click();
    await page.getByRole('dialog').getByText('Runs that have started continue.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable the automation' }).click();
    await page.getByText('reopened-bug is disabled.').waitFor();
    expect((await host.api('/automations/reopened-bug')).body).toMatchObject({ enabled: false });
  });

  it('adds a schedule and sees its next times', async () => {
    const { page } = author;
    await goTo(author, '/new-schedule');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('weekdays');
    await page.getByRole('combobox', { name: 'Automation' }).fill('restart-demo-app');
    await page.getByRole('textbox', { name: 'Cron' }).fill('0 9 * * 1-5');
    await page.getByRole('button', { name: 'Add the schedule' }).click();
    await page.getByRole('heading', { name: 'weekdays' }).waitFor();
    expect((await host.api('/schedules/weekdays')).body).toMatchObject({ cron: '0 9 * * 1-5', enabled: true });
  });

  it('replays recorded decisions with other policies, which changes nothing', async () => {
    const { page } = author;
    const before = (await host.api<{ hash: string }>('/policies')).body.hash;
    await goTo(author, '/policies');
    await page.getByRole('textbox', { name: 'New file' }).fill('freeze.cedar');
    await page.getByRole('button', { name: 'Add the file' }).click();
    const file = page.getByRole('textbox', { name: 'Policies (Cedar)' });
    await file.fill('@id("freeze") @reason("frozen") forbid (principal, action, resource);');
    await page.getByRole('button', { name: 'Replay recorded decisions' }).click();
    const flip = page.getByRole('row').filter({ hasText: 'github.labels.add' });
    await flip.getByText('Tightens').waitFor();
    await flip.getByText('denied').waitFor();
    await page.getByRole('button', { name: 'Run the cases' }).click();
    await page.getByText('2 cases: 2 failed.').waitFor();
    expect((await host.api<{ hash: string }>('/policies')).body.hash).toBe(before);
    await page.getByRole('button', { name: 'Discard the changes' }).click();
  });

  it('has caused no error and no violation of the content security policy', () => {
    expect(realProblems(author)).toEqual([]);
  });
});

describe('an owner', () => {
  it('adds a person, whose name is shown as text, and a key that is shown once and works', async () => {
    const owner = await inConsole(browser, host, 'Olivia Owner', '/settings/people/add');
    const { page } = owner;
    await page.getByRole('textbox', { name: 'ID', exact: true }).fill('mallory');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill(HOSTILE);
    await page.getByRole('textbox', { name: 'Identities' }).fill('email:mallory@acme.example');
    await page.getByRole('button', { name: 'Add the person' }).click();
    await page.getByRole('heading', { level: 1 }).getByText('<img src=x onerror=alert(1)>').waitFor();
    expect((await host.api('/people/mallory')).body).toMatchObject({ name: HOSTILE, role: 'member' });
    expect(await page.locator('body').innerText()).not.toContain('\u202e');

    await goTo(owner, '/settings/keys');
    await page.getByRole('textbox', { name: 'Name of the key' }).fill('olivias-script');
    await page.getByRole('combobox', { name: 'Role' }).selectOption('member');
    await page.getByRole('button', { name: 'Create the key' }).click();
    const key = await page.locator('.secret code').innerText();
    expect((await host.api('/me', key)).body).toMatchObject({ person: 'olivia', role: 'member' });
    await page.getByRole('button', { name: 'I have stored it' }).click();
    expect(await page.content()).not.toContain(key);
    expect(realProblems(owner)).toEqual([]);
    await owner.close();
  });

  it('creates a token for an agent, adds a connection and sets the secret of a sender', async () => {
    const owner = await inConsole(browser, host, 'Olivia Owner', '/agent-tokens');
    const { page } = owner;
    expect(await page.locator('.navigation [aria-current=page]').allInnerTexts()).toEqual(['Agents']);
    await page.getByRole('textbox', { name: 'Name of the agent' }).fill('payments-9');
    await page.getByRole('button', { name: 'Create the token' }).click();
    const token = await page.locator('.secret code').innerText();
    const { body } = await host.api<{ enrolmentTokens: object[] }>('/enrolment-tokens');
    expect(body.enrolmentTokens).toContainEqual(expect.objectContaining({ name: 'payments-9', state: 'open' }));
    await page.getByRole('button', { name: 'I have stored it' }).click();
    expect(await page.content()).not.toContain(token);
    await page.getByRole('button', { name: 'Revoke: payments-9' }).click();
    await page.getByRole('button', { name: 'Revoke the token' }).click();
    await page.getByText('The token for payments-9 is revoked.').waitFor();

    await ask(host, 'DELETE', '/connections/pagerduty');
    await goTo(owner, '/settings/connections');
    await page.getByRole('combobox', { name: 'Connection' }).fill('pagerduty');
    await page.getByRole('textbox', { name: 'Address' }).fill(`${host.url}/_sim/pagerduty`);
    await page.getByRole('textbox', { name: 'Instance' }).fill('acme2');
    await page.getByRole('button', { name: 'Add the connection' }).click();
    await page.getByText('pagerduty is saved.').waitFor();
    expect((await host.api('/connections/pagerduty')).body).toMatchObject({ instance: 'acme2' });

    await goTo(owner, '/settings/webhooks');
    await page.getByRole('combobox', { name: 'Sender' }).selectOption('servicenow');
    const secret = 'a-new-secret-of-servicenow-0123456789';
    await page.getByRole('textbox', { name: 'New secret' }).fill(secret);
    await page.getByRole('button', { name: 'Set the secret' }).click();
    await page.getByText('The secret of servicenow is set.').waitFor();
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).not.toContain(secret);
    const { secrets } = (await host.api<{ secrets: { source: string; usable: number }[] }>('/webhook-secrets')).body;
    expect(secrets.find(({ source }) => source === 'servicenow')?.usable).toBe(2);
    expect(realProblems(owner)).toEqual([]);
    await owner.close();
  });

  it('adds a source of webhooks with its secret, changes it and deletes it; its signed webhook is accepted', async () => {
    const owner = await inConsole(browser, host, 'Olivia Owner', '/settings/webhooks');
    const { page } = owner;
    await page.getByRole('textbox', { name: 'Name of the source' }).fill('probes');
    await page.getByRole('textbox', { name: 'Title of its runs' }).fill('{% trigger.payload.host %} is down');
    await page.getByRole('textbox', { name: 'Event', exact: false }).fill('{% trigger.payload.status %}');
    await page.getByRole('button', { name: 'Add the source' }).click();
    await page.getByText('Its webhooks need the signing secret generic/probes.').waitFor();
    const added = { title: '{% trigger.payload.host %} is down', event: '{% trigger.payload.status %}', enabled: true };
    expect((await host.api('/sources/probes')).body).toMatchObject({ ...added, author: 'olivia' });

    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await page.getByRole('combobox', { name: 'Sender' }).selectOption('generic/probes');
    await page.getByRole('textbox', { name: 'New secret' }).fill(secret);
    await page.getByRole('button', { name: 'Set the secret' }).click();
    await page.getByText('The secret of generic/probes is set.').waitFor();
    await host.advance(61_000);
    const body = JSON.stringify({ host: 'db-1', status: 'fired' });
    const at = new Date(await host.now());
    const signature = new Webhook(secret).sign('msg_1', at, body);
    const headers = {
      ...{ 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)) },
      'webhook-signature': signature,
    };
    const { status } = await host.send({ path: '/webhooks/generic/acme/probes', headers, body });
    expect(status).toBe(202);

    await page.getByRole('button', { name: 'Change: probes' }).click();
    await page.getByRole('textbox', { name: 'What it is' }).fill(HOSTILE);
    await page.getByRole('button', { name: 'Save the source' }).click();
    await page.getByRole('cell', { name: '<img src=x onerror=alert(1)>' }).waitFor();
    expect((await host.api('/sources/probes')).body).toMatchObject({ ...added, description: HOSTILE });
    await page.getByRole('button', { name: 'Delete: probes' }).click();
    await page.getByRole('button', { name: 'Delete the source' }).click();
    await page.getByText('probes is deleted.').waitFor();
    expect((await host.api('/sources/probes')).status).toBe(404);
    expect(problemsWhileClockMoves(owner)).toEqual([]);
    await owner.close();
  });
});

describe('an operator', () => {
  it('drains an agent with a reason, and may not remove it', async () => {
    const operator = await inConsole(browser, host, 'Oscar Operator', '/agents');
    const { page } = operator;
    await page.getByRole('button', { name: 'Drain: demo-1' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('new kernel');
    await dialog.getByText("countersign agents drain demo-1 --reason 'new kernel'").waitFor();
    await dialog.getByRole('button', { name: 'Drain the agent' }).click();
    await page.getByRole('button', { name: 'Resume: demo-1' }).waitFor();
    expect((await host.api('/agents/demo-1')).body).toMatchObject({
      draining: { by: 'oscar', reason: 'new kernel' },
    });
    await page.getByRole('link', { name: 'demo-1' }).click();
    const remove = page.getByRole('button', { name: 'Remove the agent' });
    await remove.waitFor();
    const reason = page.getByText('Only owners and admins can do this. Your role is operator.');
    expect(await reason.count()).toBeGreaterThan(0);
    expect(await remove.getAttribute('aria-disabled')).toBe('true');
    expect(realProblems(operator)).toEqual([]);
    await operator.close();
  });

  it('sees when an agent stopped', async () => {
    await agent.registerAgain();
    await agent.client.unregister();
    const operator = await inConsole(browser, host, 'Oscar Operator', '/agents');
    const { page } = operator;
    await page.getByRole('cell', { name: /^stopped \S/ }).waitFor();
    await page.getByRole('link', { name: 'demo-1' }).click();
    await page.getByText(/It stopped \S/).waitFor();
    expect(realProblems(operator)).toEqual([]);
    await operator.close();
  });
});

describe('an auditor', () => {
  const files = async (change = (text: string) => text) => {
    const read = async (name: string) => {
      const { text } = await host.api(`/runs/${runId}/evidence/${name}`);
      return Buffer.from(name === 'bundle.json' ? change(text) : text);
    };
    const mimeType = 'application/json';
    return [
      { name: 'bundle.json', mimeType, buffer: await read('bundle.json') },
      { name: 'bundle.dsse.json', mimeType, buffer: await read('bundle.dsse.json') },
    ];
  };

  it('verifies the bundle of a run, and dropped files without any request', async () => {
    const auditor = await inConsole(browser, host, 'Ada Auditor', '/evidence');
    const { page } = auditor;
    await page.getByRole('link', { name: title }).click();
    await page.getByText('Intact, and the run followed the rules').waitFor();
    await page.getByRole('cell', { name: 'label: written' }).waitFor();
    expect(realProblems(auditor)).toEqual([]);

    const [original, tampered] = [await files(), await files((text) => text.replace('"succeeded"', '"succeedeD"'))];
    await goTo(auditor, '/evidence');
    await page.getByRole('button', { name: 'Choose files to verify' }).waitFor();
    await expect.poll(() => page.getByText('keys that this stage publishes').count()).toBe(1);
    await page.context().setOffline(true);
    const field = page.getByLabel('Files to verify');
    await field.setInputFiles(original);
    await page.getByText('Intact, and the run followed the rules').waitFor();
    await field.setInputFiles(tampered);
    await page.getByText('Tampered with: the bundle is not what was signed').waitFor();
    expect(await page.getByText('Intact, and the run').count()).toBe(0);
    await field.setInputFiles(original.slice(0, 1));
    await page.getByText('bundle.dsse.json is missing').waitFor();
    await auditor.close();
  });
});

/** The last character of every line but the last, of each name in the list of runs. */
const LINE_ENDS = `[...document.querySelectorAll('.runs-table .name, .runs-table .no-wrap')].flatMap((element) => {
  const ends = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let before;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let at = 0; at < node.data.length; at += 1) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const { top, width } = range.getBoundingClientRect();
      if (before !== undefined && width > 0 && top > before.top + 4) ends.push(before.character);
      if (width > 0) before = { top, character: node.data[at] };
    }
  }
  return ends;
})`;

describe('a person who looks for what went wrong', () => {
  let person: TestPage;
  let failedId: string;
  beforeAll(async () => {
    const step = '{id: look, tool: agent.session, with: {prompt: Look at it, configuration: none}}';
    const [kind, body] = ['application/yaml', `name: look-at-it\nsteps:\n  - ${step}\n`];
    await ask(host, 'POST', '/workflows', { body, headers: { 'content-type': kind } });
    const started = { workflow: { name: 'look-at-it' } };
    failedId = (await ask<{ runId: string }>(host, 'POST', '/runs', { body: started })).runId;
    await host.waitForRun(failedId, ({ status }) => status === 'failed_terminal');
    person = await inConsole(browser, host, 'Olivia Owner', `/runs/${failedId}`);
  });
  afterAll(() => person?.close());

  it('reads what to correct before the run is repeated', async () => {
    const { page } = person;
    await page.getByText('What to do first: Create the configuration of the sessions').waitFor();
    await page.getByText(/^Then: .*“Run it again”/).waitFor();
  });

  it('sees the steps if the address names no view', async () => {
    const { page } = person;
    for (const view of ['trigger', 'toString']) {
      await goTo(person, `/runs/${failedId}?view=${view}`);
      await page.locator('.views [aria-current=page]').getByText('Steps').waitFor();
      await page.locator('.step-list').getByText('look').first().waitFor();
    }
  });

  it('reads names and times in the list of runs, which never break inside a word', async () => {
    const { page } = person;
    await goTo(person, '/runs');
    await page.getByText('CONFIGURATION_UNRESOLVED').waitFor();
    for (const width of [1280, 1000, 400]) {
      await page.setViewportSize({ width, height: 900 });
      const ends = (await page.evaluate(LINE_ENDS)) as string[];
      expect(ends.filter((character) => !'/_- '.includes(character))).toEqual([]);
      await expectToFit(person);
      await person.screenshot(`runs-${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it('reads that an event was received before, on the page of the run that it started', async () => {
    const { page } = person;
    const again = page.getByText('The event was received before; no second run was started.');
    const seen: [string, number][] = [];
    for (let times = 0; times < 2; times += 1) {
      await goTo(person, '/');
      await page.getByRole('button', { name: 'Open a GitHub issue', exact: true }).click();
      await page.waitForURL(/\/runs\/run_/);
      await page.locator('.views').waitFor();
      if (times === 1) await again.waitFor();
      seen.push([page.url(), await again.count()]);
    }
    const [first] = seen[0] ?? [''];
    expect(seen).toEqual([
      [first, 0],
      [first, 1],
    ]);
    await goTo(person, '/runs');
    await again.waitFor({ state: 'detached' });
    expect(realProblems(person)).toEqual([]);
  });

  it('reads that a run or a workflow does not exist, and nothing else', async () => {
    const { page } = person;
    await goTo(person, '/evidence/nope');
    await page.getByText('There is no such run').waitFor();
    expect(await page.getByText('no evidence yet').count()).toBe(0);
    for (const path of ['/workflows/nope', '/workflows/nope/versions']) {
      await goTo(person, path);
      await page.getByText('There is no such workflow').waitFor();
      expect(await page.locator('.sub-pages').count()).toBe(0);
      expect(await page.getByText(/newest/).count()).toBe(0);
      await page.getByRole('link', { name: 'Show all workflows' }).click();
      await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    }
  });
});

describe('every page', () => {
  const paths = () => [
    '/automations',
    '/new-automation',
    '/automations/restart-demo-app',
    '/workflows',
    '/new-workflow',
    '/workflows/triage-incident',
    '/workflows/triage-incident/edit',
    '/workflows/take-a-note/versions',
    '/workflows/take-a-note/run',
    '/schedules',
    '/new-schedule',
    '/schedules/weekdays',
    '/policies',
    '/evidence',
    `/evidence/${runId}`,
    '/agents',
    '/agents/demo-1',
    '/agent-tokens',
    '/settings',
    '/settings/people',
    '/settings/people/add',
    '/settings/people/ana',
    '/settings/connections',
    '/settings/connections/github',
    '/settings/webhooks',
    '/settings/keys',
    '/settings/changes',
    '/no-such-page',
  ];

  it('is accessible in light and dark mode, fits into 400 px, and causes no error', async () => {
    const person = await inConsole(browser, host, 'Olivia Owner', '/automations');
    const { page } = person;
    const found: Record<string, string[]> = {};
    for (const path of paths()) {
      await page.setViewportSize({ width: 1280, height: 900 });
      await goTo(person, path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      const here = await page.locator('#navigation [aria-current="page"]').count();
      expect([path, here]).toEqual([path, path === '/no-such-page' ? 0 : 1]);
      await expect.poll(() => page.getByText(/^(Loading|Checking|Verifying) …$/).count()).toBe(0);
      await page.getByLabel('Theme').selectOption('light');
      found[`${path} light`] = await accessibilityProblems(person);
      await page.getByLabel('Theme').selectOption('dark');
      found[`${path} dark`] = await accessibilityProblems(person);
      await page.setViewportSize({ width: 400, height: 900 });
      await expectToFit(person);
    }
    expect(Object.entries(found).filter(([, problems]) => problems.length > 0)).toEqual([]);
    expect(realProblems(person)).toEqual([]);
    await person.close();
  });
});
