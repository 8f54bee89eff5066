import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { subscribeRun } from '../../lambdas/run-changes/control/subscribe-run.ts';
import { ANA, CHANNEL, GONE, NOBODY, NotifyWorld, OTHER_CHANNEL } from './notify-world.ts';

let world: NotifyWorld;
beforeEach(async () => {
  world = await new NotifyWorld().open();
  vi.stubGlobal('fetch', world.shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const counts = () => ['#incidents', '#ops', '@U0ANA'].map((channel) => world.messagesIn(channel).length);

describe('6.8 the end of a run', () => {
  it('is posted once to each destination of its automation, with title, result and a link', async () => {
    const { runId } = await world.ended([CHANNEL, ANA]);
    await world.deliver();
    await world.later(90);
    expect(world.messagesIn('#incidents')).toEqual(['Succeeded: Checkout fails']);
    expect(world.messagesIn('@U0ANA')).toEqual(['Succeeded: Checkout fails']);
    const [message] = world.shop.outside.channels.get('#incidents') ?? [];
    expect(JSON.stringify(message?.blocks)).toContain(`https://console.example/runs/${runId}`);
    expect(await world.waiting()).toBe(0);
  });

  it('costs nothing for a run whose automation notifies nobody', async () => {
    const message = await world.ended([]);
    expect(world.shop.outbox.receiveEnds()).toEqual([]);
    expect((await world.shop.runs.openOutbox('acme', 10)).entries).toEqual([]);
    expect(await world.shop.runs.notices.notices('acme', message.runId)).toEqual([]);
  });

  it.each([
    ['a channel that does not exist', { type: 'slack_channel' as const, channel: '#missing' }],
    ['a person who left the workspace', GONE],
    ['a person without a Slack identity', { type: 'slack_dm_user' as const, person: 'bare' }],
    ['a person who does not exist', NOBODY],
  ])('is no failure for %s: the others are notified, and nothing is tried again', async (_, missing) => {
    const { runId } = await world.ended([missing, CHANNEL]);
    await world.deliver();
    expect([counts()[0], await world.waiting()]).toEqual([1, 0]);
    const notices = await world.shop.runs.notices.notices('acme', runId);
    expect(notices.filter(({ skipped }) => skipped !== undefined)).toHaveLength(1);
    const { calls } = world.shop.outside;
    const before = calls.length;
    await world.later(90);
    expect(calls).toHaveLength(before);
  });

  it('is posted when Slack works again; destinations that were notified are not notified again', async () => {
    await world.ended([CHANNEL, OTHER_CHANNEL]);
    const { fetch } = world.shop.outside;
    vi.stubGlobal('fetch', (url: string, init: { body?: string }) =>
      init.body?.includes('#ops') ? Promise.resolve(new Response('', { status: 503 })) : fetch(url, init as never),
    );
    await world.deliver();
    await world.later(30);
    expect([counts()[0], counts()[1], await world.waiting()]).toEqual([1, 0, 1]);
    vi.stubGlobal('fetch', fetch);
    await world.later(120);
    expect([counts()[0], counts()[1], await world.waiting()]).toEqual([1, 1, 0]);
  });

  it('quotes the title: text of others cannot mention, link or imitate', async () => {
    await world.ended([CHANNEL], '<!channel> *urgent* <https://evil.example|click> \u202eelif');
    await world.deliver();
    const [message] = world.shop.outside.channels.get('#incidents') ?? [];
    expect(message?.text).not.toContain('<!channel>');
    const blocks = JSON.stringify(message?.blocks);
    expect(blocks).toContain('"style":{"code":true}');
    expect(blocks).not.toContain('mrkdwn');
    expect(blocks).not.toContain('\u202e');
  });

  it('is posted once if several invocations process the same message at once', async () => {
    await world.ended([CHANNEL, ANA]);
    const requests = world.shop.outbox.receiveEnds();
    const { notifyRunEnd } = await import('../../lambdas/notify/notify-run-end.ts');
    await Promise.all([...requests, ...requests, ...requests].map((request) => notifyRunEnd(world.notifier, request)));
    await world.later(10);
    expect(counts()).toEqual([1, 0, 1]);
    expect(await world.waiting()).toBe(0);
  });
});

describe('6.8 crash points', () => {
  const FAULTS = ['crash before', 'crash after', 'reply lost'] as const;
  const POINTS = 11;

  it.each(FAULTS.flatMap((fault) => Array.from({ length: POINTS }, (_, point) => [fault, point] as const)))(
    '%s at call %i: every destination gets exactly one message',
    async (fault, point) => {
      await world.ended([CHANNEL, ANA]);
      let calls = 0;
      const disturbed = async <T>(run: () => Promise<T>): Promise<T> => {
        const isHit = calls === point;
        calls += 1;
        if (isHit && fault === 'crash before') throw new Error('crashed');
        const result = await run();
        if (isHit) throw new Error(fault);
        return result;
      };
      world.passage = (_name, run) => disturbed(run);
      const { fetch } = world.shop.outside;
      vi.stubGlobal('fetch', (...args: Parameters<typeof fetch>) => disturbed(() => fetch(...args)));
      await world.deliver();
      await world.later(45);
      expect(calls).toBeGreaterThan(point);
      expect(counts()).toEqual([1, 0, 1]);
      expect(await world.waiting()).toBe(0);
    },
  );

  it('a pause that is longer than the lease does not post twice', async () => {
    await world.ended([CHANNEL]);
    let paused = false;
    world.passage = async (name, run) => {
      const result = await run();
      if (name === 'saveNotice' && !paused) {
        paused = true;
        world.shop.clock.advance(10 * 60_000);
      }
      return result;
    };
    await world.deliver();
    await world.later(45);
    expect(counts()[0]).toBe(1);
  });
});

describe('6.8 subscriptions', () => {
  it('are notified once of the end of the run, also if they are made several times', async () => {
    const { shop } = world;
    const message = await shop.begin(
      'name: waits\nsteps:\n  - { id: hold, tool: wait.external, with: { event: go } }\n',
    );
    await shop.work(message);
    for (let times = 0; times < 3; times += 1) await subscribeRun(shop.worker, message, ANA, 'ana');
    await subscribeRun(shop.worker, message, CHANNEL, 'ben');
    const { controlRun } = await import('../../lambdas/run-changes/control/control-run.ts');
    await controlRun(shop.worker, message, { kind: 'cancel' }, 'ben');
    await world.deliver();
    await world.later(10);
    expect(counts()).toEqual([1, 0, 1]);
    const { commits } = await shop.now(message);
    expect(commits.flatMap(({ events }) => events).filter(({ type }) => type === 'run.subscribed')).toHaveLength(2);
  });

  it('of a run that has ended are refused', async () => {
    const message = await world.ended([]);
    await expect(subscribeRun(world.shop.worker, message, ANA, 'ana')).rejects.toMatchObject({
      code: 'RUN_TERMINAL_STATE',
    });
  });
});
