import { notifyRunEnd, type RunEndNotifier } from '../../lambdas/notify/notify-run-end.ts';
import { Person } from '../../lambdas/people/people.ts';
import type { Destination } from '../../lambdas/run/run-terms.ts';
import { SlackNotices } from '../../lambdas/slack/notice/slack-notices.ts';
import { byTest } from '../fakes/by-test.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { type Passage, undisturbed } from '../fakes/passage.ts';
import { NO_USER } from '../fakes/targets/fake-slack.ts';
import { Workshop } from '../worker/workshop.ts';

export const CHANNEL: Destination = { type: 'slack_channel', channel: '#incidents' };
export const OTHER_CHANNEL: Destination = { type: 'slack_channel', channel: '#ops' };
export const ANA: Destination = { type: 'slack_dm_user', person: 'ana' };
export const GONE: Destination = { type: 'slack_dm_user', person: 'gone' };
export const NOBODY: Destination = { type: 'slack_dm_user', person: 'nobody' };

const STEPS = 'name: quiet\nsteps:\n  - { id: done, tool: transform, with: { a: 1 } }\n';
const MINUTE_MS = 60_000;

/** A run that has ended, and the function that notifies of it. */
export class NotifyWorld {
  readonly shop = new Workshop();
  readonly ids = new CountingIds();
  passage: Passage = undisturbed;
  timeLeftMs = 30_000;

  async open(): Promise<this> {
    const { definitions, outside } = this.shop;
    outside.channels.set('#ops', []);
    const person = (id: string, ...identities: string[]) =>
      Person.parse({ id, name: id, role: 'operator', tier: 'low', groups: [], identities });
    const team = outside.access().slack?.instance;
    for (const each of [
      person('ana', `slack:${team}/U0ANA`),
      person('gone', `slack:${team}/${NO_USER}`),
      person('bare'),
    ])
      await definitions.savePerson('acme', each, byTest());
    return this;
  }

  get notifier(): RunEndNotifier {
    const { worker, definitions, log, clock, runs } = this.shop;
    const faulty =
      <Args extends unknown[], Result>(name: string, call: (...args: Args) => Promise<Result>) =>
      (...args: Args) =>
        this.passage(name, () => call(...args));
    const { notices } = runs;
    return {
      runs: {
        someRuns: faulty('someRuns', runs.someRuns.bind(runs)),
        completeOutboxEntry: faulty('complete', runs.completeOutboxEntry.bind(runs)),
      },
      notices: {
        notice: faulty('notice', notices.notice.bind(notices)),
        notices: faulty('notices', notices.notices.bind(notices)),
        save: faulty('saveNotice', notices.save.bind(notices)),
      },
      messages: new SlackNotices({
        connections: worker.connections,
        definitions,
        log,
        consoleUrl: 'https://console.example',
      }),
      clock,
      log,
      ids: this.ids,
      timeLeftMs: () => this.timeLeftMs,
    };
  }

  /** An ended run that notifies these. */
  async ended(notify: Destination[], title = 'Checkout fails') {
    const trigger = { fields: { title }, payload: {} };
    const message = await this.shop.begin(STEPS, { notify, trigger });
    await this.shop.work(message);
    return message;
  }

  /** The requests that the outbox sent; an invocation that dies leaves the entry to the sweeper. */
  async deliver(): Promise<void> {
    for (const request of this.shop.outbox.receiveEnds()) {
      await notifyRunEnd(this.notifier, request).catch(() => undefined);
    }
  }

  /** Minutes pass: the sweeper sends what is due. */
  async later(minutes: number): Promise<void> {
    for (let minute = 0; minute < minutes; minute += 1) {
      this.shop.clock.advance(MINUTE_MS);
      await this.shop.sweep();
      await this.deliver();
    }
  }

  messagesIn(channel: string): string[] {
    return (this.shop.outside.channels.get(channel) ?? []).map(({ text }) => text);
  }

  /** The outbox entries about notifications that are left. */
  async waiting(): Promise<number> {
    const { entries } = await this.shop.runs.openOutbox('acme', 100);
    return entries.filter(({ kind }) => kind === 'notify_run_end').length;
  }
}
