import { runCommandLine } from '../../bin/commands/command-line.ts';
import type { ExitCode } from '../../bin/commands/failure.ts';
import { eventText } from '../../bin/commands/runs/event-text.ts';
import { withShortIds } from '../../bin/terminal/page.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { DemoHost } from './demo-host.ts';
import type { Incident } from './incidents.ts';
import type { Narrator } from './narrator.ts';
import type { SlackPeople } from './slack-people.ts';

const COLUMNS = 110;

/** The most important events. `countersign runs watch` shows all of them. */
const SHOWN_EVENTS: readonly string[] = [
  'run.accepted',
  'policy.decided',
  'approval.requested',
  'approval.decided',
  'write.intended',
  'write.settled',
  'write.compensated',
];

/** Everything that an act of the demo needs. */
export class Stage {
  readonly system: DemoHost;
  readonly slack: SlackPeople;
  readonly narrator: Narrator;
  /** A folder for files. It is deleted after the demo. */
  readonly folder: string;

  constructor({ system, slack, narrator, folder }: Pick<Stage, 'system' | 'slack' | 'narrator' | 'folder'>) {
    this.system = system;
    this.slack = slack;
    this.narrator = narrator;
    this.folder = folder;
  }

  /** Runs a command as a person does, and shows its output. */
  async types(...words: string[]): Promise<{ exitCode: ExitCode; said: string }> {
    const lines: string[] = [];
    const withoutFolder = (text: string) => text.replaceAll(`${this.folder}/`, '');
    const write = (text: string) => void lines.push(...withoutFolder(text).split('\n'));
    this.narrator.types(withoutFolder(`npx countersign ${words.join(' ')}`));
    const exitCode = await runCommandLine(
      words,
      { COUNTERSIGN_URL: this.system.url },
      {
        isInteractive: true,
        columns: COLUMNS,
        print: write,
        note: write,
        paint: (_tone, text) => text,
        ask: async () => undefined,
      },
    );
    for (const line of lines) this.narrator.shows(line);
    return { exitCode, said: lines.join('\n') };
  }

  /** Shows the events of a run until it has ended. */
  follow(runId: string, since = 0): Promise<string> {
    return this.system.follow(runId, (commit) => this.showCommit(commit), since);
  }

  showCommit({ events, at }: Commit): void {
    for (const event of events) {
      if (SHOWN_EVENTS.includes(event.type)) this.narrator.shows(withShortIds(eventText(event, at)));
    }
  }

  /** How many times each write for an incident reached its target. */
  async writesAbout({ sysId, number }: Incident) {
    const writes = await this.system.writes();
    const patches = writes.filter(({ path }) => path.split('?')[0]?.endsWith(`/incident/${sysId}`));
    const setting = (field: string) => patches.filter(({ body }) => Object.hasOwn(Object(body), field)).length;
    const messages = writes.filter(({ system, body }) => {
      const { channel, text } = Object(body) as Record<string, unknown>;
      return system === 'slack' && channel === '#incidents' && String(text).includes(number);
    });
    return {
      assignment_group: setting('assignment_group'),
      work_notes: setting('work_notes'),
      'Slack messages': messages.length,
    };
  }
}

export const ONCE_EACH = { assignment_group: 1, work_notes: 1, 'Slack messages': 1 };
export const NOTHING = { assignment_group: 0, work_notes: 0, 'Slack messages': 0 };
