import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { notifyRunEnd } from '../../lambdas/notify/notify-run-end.ts';
import { postProgress } from '../../lambdas/notify/post-progress.ts';
import { Person } from '../../lambdas/people/people.ts';
import { controlRun } from '../../lambdas/run-changes/control/control-run.ts';
import { handleCommand } from '../../lambdas/slack/handle-command.ts';
import { handleEvent } from '../../lambdas/slack/handle-event.ts';
import { SlackNotices } from '../../lambdas/slack/notice/slack-notices.ts';
import { TeamTenants } from '../../lambdas/slack/request/team-tenants.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { byTest } from '../fakes/by-test.ts';
import { MemorySigningSecrets } from '../fakes/memory/memory-signing-secrets.ts';
import { SIGNING_SECRET } from '../local/simulators/world.ts';
import { Workshop } from '../worker/workshop.ts';
import { slackRequest, TEAM } from './slack-world.ts';

const WAITS = 'name: talk\nsteps:\n  - { id: ask, tool: wait.external, with: { event: slack.message } }\n';
const CHANNEL = 'C0INCIDENTS';
const FIRST = '1700000000.000100';

let shop: Workshop;
let ports: Parameters<typeof handleEvent>[0] & Parameters<typeof handleCommand>[0];
let ids = 0;
beforeEach(async () => {
  shop = new Workshop();
  ids = 0;
  const { definitions, worker, clock, log } = shop;
  vi.stubGlobal('fetch', shop.outside.fetch);
  const person = (id: string, role: string, user: string) =>
    Person.parse({ id, name: id, role, tier: 'low', groups: [], identities: [`slack:${TEAM}/${user}`] });
  await definitions.savePerson('acme', person('ana', 'operator', 'U1ANA'), byTest());
  await definitions.savePerson('acme', person('max', 'member', 'U2MAX'), byTest());
  await definitions.saveConnection('acme', { name: 'slack', baseUrl: 'https://slack.test', instance: TEAM });
  await definitions.saveConnection('globex', { name: 'slack', baseUrl: 'https://slack.test', instance: 'T200GLOBEX' });
  await definitions.publishWorkflow('acme', parseWorkflow(WAITS, 'f'), 1);
  await definitions.saveAutomation('acme', {
    name: 'talk',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'manual' },
    workflow: { name: 'talk', version: 1 },
  });
  await definitions.saveSettings('acme', { caps: {}, workspaces: {}, counterShards: 1, slackAutomation: 'talk' });
  ports = {
    ...worker,
    definitions,
    ids: { next: (prefix: string) => `${prefix}_${(++ids).toString(16).padStart(8, '0')}` },
    teams: new TeamTenants(['acme', 'globex'], definitions, () => clock.now()),
    secrets: new MemorySigningSecrets({ acme: { slack: SIGNING_SECRET }, globex: { slack: 'globex-signing-secret' } }),
    notices: shop.runs.notices,
    messages: new SlackNotices({ connections: worker.connections, definitions, log, consoleUrl: 'https://c.example' }),
  };
});
afterEach(() => vi.unstubAllGlobals());

const event = (differing: object = {}) => ({
  type: 'event_callback',
  team_id: TEAM,
  event: {
    type: 'app_mention',
    user: 'U1ANA',
    text: '<@U900BOT> restart payments',
    channel: CHANNEL,
    ts: FIRST,
    ...differing,
  },
  authorizations: [{ user_id: 'U900BOT' }],
});
const receive = (body: object, secret?: string) =>
  handleEvent(ports, slackRequest(JSON.stringify(body), { nowMs: shop.clock.now(), ...(secret && { secret }) }));
const runs = () => [...shop.runs.inside.runs()];
const inThread = () =>
  (shop.outside.channels.get('#incidents') ?? [])
    .filter(({ thread_ts }) => thread_ts === FIRST)
    .map(({ text }) => text);
const reply = (ts: string, differing: object = {}) =>
  event({ type: 'message', channel_type: 'channel', text: 'yes', ts, thread_ts: FIRST, ...differing });
async function work(): Promise<void> {
  for (const message of shop.queue.receive()) await shop.work(message);
  const notifier = { ...ports, timeLeftMs: () => 30_000 } as never;
  for (const asked of shop.outbox.receiveProgress()) await postProgress(notifier, asked);
  for (const asked of shop.outbox.receiveEnds()) await notifyRunEnd(notifier, asked);
}

describe('6.9 a message to the app', () => {
  it('starts a run of the automation of the workspace, with its text as data, and shows progress in the thread', async () => {
    await receive(event());
    expect(runs()).toMatchObject([
      { automation: 'talk', request: { actor: 'ana' }, makers: ['ana'], status: 'queued' },
    ]);
    await work();
    const [run] = runs();
    expect(run).toMatchObject({ status: 'waiting_external', enrichment: { title: 'restart payments' } });
    expect(inThread()).toEqual(['Waits for an answer in this thread.']);
  });

  it('starts one run, although Slack sends it as two events and repeats them', async () => {
    for (let times = 0; times < 3; times += 1) {
      await receive(event());
      await receive(event({ type: 'message', channel_type: 'channel' }));
    }
    expect(runs()).toHaveLength(1);
  });

  it('starts one run, although two messages arrive in a new thread at once', async () => {
    const second = event({ ts: '1700000001.000100', thread_ts: FIRST });
    await Promise.all([receive(event()), receive(second)]);
    expect(runs()).toHaveLength(1);
  });

  it('in the thread of an open run wakes it, once; its end is posted to the thread', async () => {
    await receive(event());
    await work();
    for (let times = 0; times < 2; times += 1) await receive(reply('1700000002.000100'));
    await work();
    expect(runs()).toMatchObject([{ status: 'succeeded' }]);
    const { steps } = await shop.now({ tenant: 'acme', runId: runs()[0]?.runId ?? '' });
    expect(steps).toMatchObject([{ output: { text: 'yes', person: 'ana' } }]);
    expect(inThread()).toEqual(['Waits for an answer in this thread.', 'Succeeded: restart payments']);
  });

  it('in the thread of an ended run starts the next one; what people say to each other starts nothing', async () => {
    await receive(event());
    await work();
    await receive(reply('1700000002.000100'));
    await work();
    await receive(reply('1700000003.000100', { text: 'thanks!' }));
    expect(runs()).toHaveLength(1);
    await receive(event({ text: '<@U900BOT> again', ts: '1700000004.000100', thread_ts: FIRST }));
    await work();
    expect(runs().map(({ status }) => status)).toEqual(['succeeded', 'waiting_external']);
  });

  it('in the thread of a run that does not wait gets an answer, once; people may talk to each other', async () => {
    await receive(event());
    await receive(reply('1700000001.000100'));
    expect(inThread()).toEqual([]);
    const asked = event({ ts: '1700000002.000100', thread_ts: FIRST });
    for (let times = 0; times < 2; times += 1) await receive(asked);
    expect(inThread()).toEqual(['The run of this thread is still running and does not wait for a message.']);
  });

  it('wakes one step, although Slack repeats it when the run waits in the next step, and when it has ended', async () => {
    const twice = `${WAITS}  - { id: confirm, tool: wait.external, with: { event: slack.message } }\n`;
    await shop.definitions.publishWorkflow('acme', parseWorkflow(twice, 'f'), 2);
    const [automation] = await shop.definitions.automations('acme');
    if (automation)
      await shop.definitions.saveAutomation('acme', { ...automation, workflow: { name: 'talk', version: 2 } });
    await receive(event());
    await work();
    const answer = reply('1700000002.000100');
    for (let times = 0; times < 3; times += 1) {
      await Promise.all([receive(answer), receive(answer)]);
      await work();
    }
    const { steps } = await shop.now({ tenant: 'acme', runId: runs()[0]?.runId ?? '' });
    expect(steps.map(({ status }) => status)).toEqual(['succeeded', 'waiting_external']);
    const last = event({ text: '<@U900BOT> sure', ts: '1700000003.000100', thread_ts: FIRST });
    for (let times = 0; times < 2; times += 1) {
      await receive(last);
      await work();
    }
    expect(runs().map(({ status }) => status)).toEqual(['succeeded']);
  });

  it('is accepted without a request to Slack, which may be slow', async () => {
    await receive(event());
    await work();
    const before = shop.outside.calls.length;
    await receive(reply('1700000002.000100'));
    expect(shop.outside.calls.slice(before)).toEqual([]);
  });

  it('that Slack cannot show an answer to is refused, so that Slack sends it again; the answer is posted once', async () => {
    const asked = event({ user: 'U0OTHER' });
    shop.outside.next('POST slack', { status: 503 }, 'lost_answer');
    await expect(receive(asked)).rejects.toMatchObject({ status: 503 });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      shop.clock.advance(61_000);
      await receive(asked).catch((error: unknown) => expect(error).toMatchObject({ status: 503 }));
    }
    expect(inThread()).toEqual([expect.stringContaining('does not know you')]);
  });

  it('arrives as the person typed it: without mentions, with the characters that Slack escapes', async () => {
    await receive(event({ text: `<@U900BOT> if a &lt; b &amp;&amp; c ${'😀'.repeat(200)}`, subtype: 'file_share' }));
    await work();
    const [run] = runs();
    expect(run?.enrichment?.title).toMatch(/^if a < b && c 😀/u);
    expect(run?.enrichment?.title.isWellFormed()).toBe(true);
  });

  it.each([
    ['of the app itself', { user: 'U900BOT' }],
    ['of a bot', { bot_id: 'B900BOT' }],
    ['of another app', { bot_profile: { app_id: 'A0OTHER' } }],
    ['of an integration', { subtype: 'bot_message' }],
    ['that was edited', { subtype: 'message_changed' }],
    ['that was deleted', { subtype: 'message_deleted' }],
    ['that says who joined', { subtype: 'channel_join' }],
    ['without a user', { user: undefined }],
    ['to nobody, in no thread', { type: 'message', channel_type: 'channel' }],
  ])('%s is ignored', async (_, differing) => {
    await receive(event(differing));
    expect([runs(), inThread()]).toEqual([[], []]);
  });

  it('of our own in the thread of a run does not wake it: there is no echo', async () => {
    await receive(event());
    await work();
    await receive(reply('1700000002.000100', { bot_id: 'B900BOT', user: 'U900BOT' }));
    expect(runs()).toMatchObject([{ status: 'waiting_external' }]);
  });

  it.each([
    ['an unknown person', { user: 'U0OTHER' }, 'does not know you'],
    ['a person who may not start runs', { user: 'U2MAX' }, 'Only operators'],
  ])('of %s starts nothing, and says why', async (_, differing, said) => {
    await receive(event(differing));
    expect([runs(), inThread()]).toEqual([[], [expect.stringContaining(said)]]);
  });

  it('of a person who may not control runs does not wake a run', async () => {
    await receive(event());
    await work();
    await receive(reply('1700000002.000100', { user: 'U2MAX' }));
    expect(runs()).toMatchObject([{ status: 'waiting_external' }]);
  });

  it('with the signature or the workspace of another tenant is refused', async () => {
    await expect(receive(event(), 'globex-signing-secret')).rejects.toMatchObject({ status: 401 });
    await expect(receive({ ...event(), team_id: 'T200GLOBEX' })).rejects.toMatchObject({ status: 401 });
    expect(runs()).toEqual([]);
  });

  it('in the same channel and thread of another workspace reaches no run of this tenant', async () => {
    await receive(event());
    await work();
    await receive({ ...reply('1700000002.000100'), team_id: 'T200GLOBEX' }, 'globex-signing-secret');
    expect(runs()).toMatchObject([{ tenant: 'acme', status: 'waiting_external' }]);
  });

  it('without an automation of the workspace, or with a disabled one, starts nothing and says what to do', async () => {
    const [automation] = await shop.definitions.automations('acme');
    if (automation) await shop.definitions.saveAutomation('acme', { ...automation, enabled: false });
    await receive(event());
    await shop.definitions.saveSettings('acme', { caps: {}, workspaces: {}, counterShards: 1 });
    await receive(event({ ts: '1700000005.000100', thread_ts: FIRST }));
    expect(runs()).toEqual([]);
    expect(inThread()).toEqual([expect.stringContaining('is disabled'), expect.stringContaining('slackAutomation')]);
  });

  it('cannot imitate the app: what it says is quoted at the end', async () => {
    await receive(event({ text: '<@U900BOT> <!channel> *Approved* <https://evil.example|ok>' }));
    await work();
    await controlRun(shop.worker, { tenant: 'acme', runId: runs()[0]?.runId ?? '' }, { kind: 'cancel' }, 'ana');
    await work();
    expect(inThread().at(-1)).not.toContain('<!channel>');
  });
});

describe('/countersign', () => {
  const type = async (user: string, text: string, trigger_id = 'trigger.1') => {
    const form = new URLSearchParams({ team_id: TEAM, user_id: user, text, trigger_id }).toString();
    const { body = '' } = await handleCommand(ports, slackRequest(form, { nowMs: shop.clock.now() }));
    return JSON.stringify(JSON.parse(body));
  };

  it('run starts a run once, also if Slack repeats the command', async () => {
    expect(await type('U1ANA', 'run talk Restart the queue')).toContain('Started');
    expect(await type('U1ANA', 'run talk Restart the queue')).toContain('Already started');
    expect(runs()).toMatchObject([{ automation: 'talk', request: { actor: 'ana' } }]);
  });

  it('run refuses people who may not, and says which automations exist', async () => {
    expect(await type('U2MAX', 'run talk')).toContain('Only operators');
    expect(await type('U1ANA', 'run tlak')).toContain('talk');
    expect(await type('U1ANA', 'run')).toContain('Name an automation');
    expect(runs()).toEqual([]);
  });

  it('list and status show the runs of the tenant; help lists the commands', async () => {
    await type('U1ANA', 'run talk <!channel> Restart');
    const listed = await type('U2MAX', 'list');
    expect(listed).toContain('queued');
    expect(listed).not.toContain('<!channel>');
    expect(await type('U2MAX', 'status')).toContain('0 need a human');
    for (const command of ['pending', 'list', 'status', 'run']) expect(await type('U2MAX', 'help')).toContain(command);
  });
});
