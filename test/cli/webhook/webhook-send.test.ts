import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestHost, type TestHost } from '../../local/harness/test-host.ts';
import { onTerminal, piped } from '../command-line.ts';

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host?.stop());

const send = (sample: string, ...options: string[]) =>
  piped(['webhook', 'send', `events/${sample}`, ...options], { COUNTERSIGN_URL: host.url });

describe('webhook send', () => {
  test('signs a GitHub sample, and the run it starts labels the issue', async () => {
    const { exitCode, stdout } = await send('github-issue-opened.json');
    const runId = /^accepted: (run_[0-9a-f]{32})$/m.exec(stdout)?.[1] ?? '';
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`follow it: npx countersign runs watch ${runId.slice(0, 12)}`);
    expect((await host.waitForRun(runId)).subject).toBe('github:octo-org/payments#1');
    const labels = await host.calls({ system: 'github', method: 'POST' });
    expect(labels.map(({ path, body }) => [path, body])).toEqual([
      ['/repos/octo-org/payments/issues/1/labels', { labels: ['triage'] }],
    ]);
  });

  test('signs a ServiceNow sample, and reports a duplicate', async () => {
    const first = JSON.parse((await send('servicenow-incident-p1.json', '--json')).stdout);
    const second = JSON.parse((await send('servicenow-incident-p1.json', '--json')).stdout);
    expect(first).toEqual({ status: 202, runIds: [expect.stringMatching(/^run_/)], deduplicated: false });
    expect(second).toEqual({ ...first, deduplicated: true });
    expect((await send('servicenow-incident-p1.json')).stdout).toContain(`duplicate, no new run: ${first.runIds[0]}`);
  });

  test('sends the same delivery again with --delivery', async () => {
    const first = JSON.parse((await send('github-issue-opened-other.json', '--json', '--delivery', 'the-same')).stdout);
    const second = JSON.parse(
      (await send('github-issue-opened-other.json', '--json', '--delivery', 'the-same')).stdout,
    );
    expect(second).toEqual({ ...first, deduplicated: true });
  });

  test('uses the local secret of another tenant', async () => {
    const { exitCode, stdout } = await send('github-issue-opened.json', '--tenant', 'globex', '--json');
    expect(exitCode).toBe(0);
    const [runId] = JSON.parse(stdout).runIds;
    expect((await host.api(`/runs/${runId}`, 'local-globex-owner-key')).status).toBe(200);
    const followed = await send('github-issue-opened.json', '--tenant', 'globex');
    expect(followed.stdout).toMatch(
      /follow it: npx countersign runs watch run_[0-9a-f]{8} --key local-globex-owner-key\n/,
    );
  });

  test.each([
    ['github-ping.json', [], 0, 'no run was started: no automation matches the event, or its filter'],
    [
      'github-issue-opened.json',
      ['--event', 'issue_comment'],
      1,
      'the header X-GitHub-Event is issue_comment, but the body belongs to another event: it has no `comment`',
    ],
    ['servicenow-incident-p4.json', [], 0, 'no run was started: no automation matches the event, or its filter'],
    ['github-malformed.json', [], 1, 'responded with 400: the body is not JSON'],
    ['servicenow-incident-missing-sys-id.json', [], 1, 'sys_id'],
    ['servicenow-not-an-object.json', [], 1, 'responded with 400: the body is not a payload of the business rule'],
    ['github-issue-opened.json', ['--secret', 'a-guess-of-a-secret'], 3, 'responded with 401: the signature does'],
    [
      'github-issue-opened.json',
      ['--source', 'pagerduty'],
      2,
      '--source must be github, servicenow or generic/NAME, not "pagerduty"',
    ],
    ['README.md', [], 2, 'cannot derive the source from the file name README.md'],
    ['github-missing.json', [], 2, 'cannot read events/github-missing.json'],
  ])('%s with %j exits with %i', async (sample, options, code, sentence) => {
    const args = ['webhook', 'send', `events/${sample}`, '--url', host.url, ...options];
    const { exitCode, stdout, stderr } = await onTerminal(100, args);
    expect(stdout + stderr).toContain(sentence);
    expect(exitCode).toBe(code);
  });

  test('does not sign for a deployed stage with a local secret', async () => {
    const { exitCode, stderr } = await send('github-ping.json', '--url', 'https://stage.example.com');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--secret is required to sign a webhook for https://stage.example.com');
  });
  test('signs with the time of the local host', async () => {
    await host.advance(60 * 60_000);
    const { exitCode, stderr } = await send('servicenow-incident-p2.json');
    expect(exitCode, stderr).toBe(0);
  });
});
