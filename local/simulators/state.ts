import type { CallRecord } from './calls.ts';
import type { GitHub } from './github/github.ts';
import type { PagerDuty } from './pagerduty/pagerduty.ts';
import type { ServiceNow } from './servicenow/servicenow.ts';
import type { SessionSystem } from './sessions/a2a-server.ts';
import type { Slack } from './slack/slack.ts';
import { USERS } from './slack/workspace.ts';

/** The page polls every second, so its size must not grow with the data of a load test. */
const INCIDENTS_SHOWN = 30;
const ISSUES_SHOWN = 30;
const MESSAGES_SHOWN = 40;
const ALERTS_SHOWN = 20;
const SESSIONS_SHOWN = 20;
const CALLS_SHOWN = 60;

export interface SimulatedSystems {
  servicenow: ServiceNow;
  github: GitHub;
  slack: Slack;
  pagerduty: PagerDuty;
  sessions: SessionSystem;
  calls: CallRecord;
}

export type SystemsState = ReturnType<typeof readState>;

/** The newest records of every simulated system, without credentials and secrets. */
export function readState({ servicenow, github, slack, pagerduty, sessions, calls }: SimulatedSystems) {
  const { tables } = servicenow;
  return {
    users: USERS,
    incidents: tables.latestIncidents(INCIDENTS_SHOWN).map((row) => ({
      sys_id: row.sys_id ?? '',
      shown: {
        state: tables.displayOf('state', row.state ?? ''),
        priority: tables.displayOf('priority', row.priority ?? ''),
        assignment_group: tables.displayOf('assignment_group', row.assignment_group ?? ''),
        assigned_to: tables.displayOf('assigned_to', row.assigned_to ?? ''),
      },
      journal: tables.journalOf(row.sys_id ?? '').reverse(),
      row,
    })),
    issues: github.issues
      .latestIssues(ISSUES_SHOWN)
      .map((issue) => ({ ...issue, comments: github.issues.commentsOf(issue) })),
    channels: slack.workspaces.flatMap((workspace) =>
      workspace.channels().map((channel) => ({
        ...channel,
        team: workspace.team,
        messages: workspace.latestMessages(channel.id, MESSAGES_SHOWN),
      })),
    ),
    views: slack.workspaces.flatMap((workspace) => workspace.views()),
    alerts: pagerduty.latestAlerts(ALERTS_SHOWN),
    // Without contract and notifications, which have the token of the session.
    sessions: sessions
      .latestSessions(SESSIONS_SHOWN)
      .map(({ contract, notifications: _credentials, prompt: _long, ...session }) => ({
        ...session,
        runId: contract.run_id,
      })),
    calls: calls.latest(CALLS_SHOWN),
  };
}
