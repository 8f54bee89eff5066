import type { RecordedCall } from '../calls.ts';
import type { Alert } from '../pagerduty/pagerduty.ts';
import { JOURNALS } from '../servicenow/tables.ts';
import { messageCard, modalForm } from '../slack/cards.ts';
import { TEAM } from '../slack/workspace.ts';
import type { SystemsState } from '../state.ts';
import { html, type SafeHtml } from './html.ts';

/** The page replaces the element of a card only if its HTML has changed, so that open and focused parts stay. */
interface Card {
  key: string;
  html: string;
}

interface Group {
  key: string;
  title: string;
  cards: Card[];
}

export interface PageCards {
  users: SystemsState['users'];
  sections: Record<'slack' | 'servicenow' | 'github' | 'pagerduty' | 'sessions' | 'calls', Group[]>;
  modals: (Card & { user: string })[];
}

export function toCards(state: SystemsState): PageCards {
  return {
    users: state.users,
    sections: {
      slack: state.channels.map(channelGroup),
      servicenow: single(
        lastChangedFirst(state.incidents, ({ row }) => row.sys_updated_on ?? '').map((incident) =>
          card(incident.sys_id, incidentCard(incident)),
        ),
      ),
      github: single(
        lastChangedFirst(state.issues, (issue) => issue.updated_at).map((issue) =>
          card(`${issue.repository}#${issue.number}`, issueCard(issue)),
        ),
      ),
      pagerduty: single(state.alerts.map((alert) => card(alert.id, alertCard(alert)))),
      sessions: single(state.sessions.map((session) => card(session.id, sessionCard(session)))),
      calls: single(state.calls.map((call) => card(String(call.seq), callRow(call)))),
    },
    modals: state.views.map((view) => ({ ...card(view.id, modalForm(view)), user: view.user })),
  };
}

const card = (key: string, content: SafeHtml): Card => ({ key, html: content.text.trim() });

const single = (cards: Card[]): Group[] => [{ key: 'all', title: '', cards }];

/** Records that changed last come first. Of records that changed at the same time, the oldest comes first. */
function lastChangedFirst<T>(newestFirst: readonly T[], changedAt: (thing: T) => string): T[] {
  return newestFirst.toReversed().sort((a, b) => changedAt(b).localeCompare(changedAt(a)));
}

/** Newest first, with replies below their message. */
function channelGroup({ id, team, name, messages }: SystemsState['channels'][number]): Group {
  const tops = messages.filter(
    ({ ts, thread_ts }) => !thread_ts || thread_ts === ts || !messages.some((m) => m.ts === thread_ts),
  );
  const cards = tops.map((top) => {
    const replies = messages.filter((message) => message.thread_ts === top.ts && message.ts !== top.ts);
    return card(top.ts, messageCard(top, replies));
  });
  const place = name.startsWith('@') ? name : `#${name}`;
  const title = team === TEAM ? place : `${place} (workspace ${team.domain})`;
  return { key: `${team.id}/${id}`, title, cards: cards.reverse() };
}

const time = (at: string): SafeHtml => html`<time datetime="${at}"></time>`;

function incidentCard({ row, shown, journal }: SystemsState['incidents'][number]): SafeHtml {
  const notes = journal.map(
    (note) =>
      html`<li><p class="byline"><span class="tag">${JOURNALS[note.element ?? ''] ?? note.element}</span> ${note.sys_created_by} ${time(`${note.sys_created_on?.replace(' ', 'T')}Z`)}</p><p class="prose">${note.value}</p></li>`,
  );
  return html`<article class="card">
    <p class="byline"><span class="id">${row.number}</span> <span class="chip p${row.priority}">${shown.priority}</span> <span class="chip">${shown.state}</span><span class="spacer"></span>${row.sys_mod_count !== '0' && html`<span class="quiet" title="sys_mod_count">changed ${row.sys_mod_count}×</span>`}</p>
    <h3>${row.short_description}</h3>
    <dl><dt>Group</dt><dd>${shown.assignment_group || html`<span class="quiet">none</span>`}</dd>${shown.assigned_to !== '' && html`<dt>Assigned</dt><dd>${shown.assigned_to}</dd>`}</dl>
    ${notes.length > 0 && html`<details open><summary>${count(notes.length, 'journal entry', 'journal entries')}</summary><ul class="notes">${notes}</ul></details>`}
  </article>`;
}

function issueCard(issue: SystemsState['issues'][number]): SafeHtml {
  const comments = issue.comments.map(
    (comment) =>
      html`<li><p class="byline"><strong>${comment.author}</strong> ${time(comment.created_at)}</p><p class="prose">${comment.body}</p></li>`,
  );
  return html`<article class="card">
    <p class="byline"><span class="id">${issue.repository}#${issue.number}</span> <span class="chip">${issue.state}</span></p>
    <h3>${issue.title}</h3>
    ${issue.labels.length + issue.assignees.length > 0 && html`<p class="labels">${issue.labels.map((label) => html`<span class="label">${label}</span>`)}${issue.assignees.map((login) => html`<span class="mention">@${login}</span>`)}</p>`}
    ${comments.length > 0 && html`<details open><summary>${count(comments.length, 'comment', 'comments')}</summary><ul class="notes">${comments}</ul></details>`}
  </article>`;
}

function alertCard(alert: Alert): SafeHtml {
  return html`<article class="card">
    <p class="byline"><span class="chip ${alert.status}">${alert.status}</span> <span class="chip">${alert.severity}</span> ${time(alert.created_at)}<span class="spacer"></span>${alert.triggers > 1 && html`<span class="quiet">${alert.triggers} triggers merged</span>`}</p>
    <h3>${alert.summary}</h3>
    <p class="quiet">${alert.source} · <span class="id">${alert.dedup_key}</span></p>
  </article>`;
}

function sessionCard({ id, state, behavior, runId, deeds, startedAt }: SystemsState['sessions'][number]): SafeHtml {
  const done = deeds.map(({ at, what }) => html`<li><p class="byline">${time(at)} ${what}</p></li>`);
  return html`<article class="card">
    <p class="byline"><span class="chip">${state.replace('TASK_STATE_', '').toLowerCase()}</span>${behavior && html` <span class="chip">${behavior.replaceAll('_', ' ')}</span>`} ${time(startedAt)}<span class="spacer"></span><span class="id">${id}</span></p>
    <h3><a href="/runs/${runId}">${runId}</a></h3>
    ${done.length > 0 && html`<details open><summary>${count(done.length, 'log entry', 'log entries')}</summary><ul class="notes">${done}</ul></details>`}
  </article>`;
}

function callRow(call: RecordedCall): SafeHtml {
  const line = html`<span class="quiet">${call.seq}</span>${time(call.at)}<span>${call.system}</span><span class="method">${call.method}</span><span class="path">${call.path}</span><span class="status s${String(call.status)[0]}">${call.status}${call.answer && html` ${call.answer}`}</span>`;
  if (call.body === null) return html`<div class="call">${line}</div>`;
  return html`<details class="call-with-body"><summary class="call">${line}</summary><pre>${JSON.stringify(call.body, null, 2)}</pre></details>`;
}

const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;
