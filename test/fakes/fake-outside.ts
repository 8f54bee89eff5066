import type { Access } from '../../lambdas/connectors/connector.ts';
import type { Clock } from '../../lambdas/entry/ports.ts';
import { type Passage, undisturbed } from './passage.ts';

export interface Incident {
  fields: Record<string, string>;
  workNotes: string[];
}

export interface SlackMessage {
  ts: string;
  text: string;
  thread_ts?: string;
  metadata?: unknown;
}

export interface OutsideCall {
  name: string;
  path: string;
  body: unknown;
}

/** What becomes of the next call of a name. `lost_answer` acts and says nothing; `lost_request` never arrives. */
export type OutsideFault =
  | { status: number; retryAfterSeconds?: number }
  | 'unreachable'
  | 'lost_request'
  | 'lost_answer'
  | 'truncated'
  | { body: unknown };

type Answer = { status: number; body: unknown };

/**
 * ServiceNow, GitHub and Slack as far as the connectors speak to them, behind a `fetch` of its own: no sockets, no time,
 * so that a whole run can be repeated exactly. The contract of the connectors holds it to what the simulators do.
 */
export class FakeOutside {
  readonly incidents = new Map<string, Incident>();
  readonly issueLabels = new Map<string, string[]>();
  /** By name, `#incidents`. */
  readonly channels = new Map<string, SlackMessage[]>();
  readonly calls: OutsideCall[] = [];
  readonly #clock: Clock;
  readonly #passage: Passage;
  readonly #faults: { name: string; fault: OutsideFault }[] = [];
  #messages = 0;

  constructor(clock: Clock, passage: Passage = undisturbed) {
    this.#clock = clock;
    this.#passage = passage;
  }

  /** One connection to each system, as a tenant would define them. */
  access(instance = 'acme'): Record<'servicenow' | 'github' | 'slack', Access> {
    return {
      servicenow: { baseUrl: 'http://servicenow', instance, credential: { username: 'countersign', password: 'x' } },
      github: { baseUrl: 'http://github', instance, credential: { token: 'x' } },
      slack: { baseUrl: 'http://slack', instance, credential: { botToken: 'x' } },
    };
  }

  /** The next call of this name (`POST slack`) suffers this; several are suffered in order. */
  next(name: string, ...faults: OutsideFault[]): void {
    this.#faults.push(...faults.map((fault) => ({ name, fault })));
  }

  callsOf(name: string): OutsideCall[] {
    return this.calls.filter((call) => call.name === name);
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const url = new URL(String(input));
    const name = `${init.method ?? 'GET'} ${url.hostname}`;
    return this.#passage(name, async () => this.#exchange(name, url, init.body));
  };

  #exchange(name: string, url: URL, sent: unknown): Response {
    const body = typeof sent === 'string' ? JSON.parse(sent) : undefined;
    const at = this.#faults.findIndex((each) => each.name === name);
    const fault = at < 0 ? undefined : this.#faults.splice(at, 1)[0]?.fault;
    if (fault === 'unreachable') throw fetchFailed('ECONNREFUSED');
    if (fault === 'lost_request') throw fetchFailed('UND_ERR_SOCKET');
    this.calls.push({ name, path: url.pathname + url.search, body });
    if (typeof fault === 'object' && 'status' in fault) {
      const headers = fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) };
      return new Response('{"error":"ordered"}', { status: fault.status, headers });
    }
    const answer = this.#answer(name, url, body);
    if (fault === 'lost_answer') throw fetchFailed('ECONNRESET');
    const text = JSON.stringify(typeof fault === 'object' ? fault.body : answer.body);
    return new Response(fault === 'truncated' ? text.slice(0, text.length / 2) : text, { status: answer.status });
  }

  #answer(name: string, url: URL, body: Record<string, unknown>): Answer {
    const parts = url.pathname.split('/').filter(Boolean);
    if (name.endsWith('servicenow')) return this.#servicenow(url, parts, body);
    if (name.endsWith('github')) return this.#github(parts, body);
    return this.#slack(url, parts[1] ?? '', body);
  }

  #servicenow(url: URL, [, , , table, sysId = '']: string[], body: Record<string, unknown> | undefined): Answer {
    if (table === 'sys_journal_field') {
      const query = url.searchParams.get('sysparm_query') ?? '';
      const [, id = '', mark = ''] = /^element_id=(.*)\^element=work_notes\^valueLIKE(.*)$/.exec(query) ?? [];
      const notes = this.incidents.get(id)?.workNotes ?? [];
      const found = notes.flatMap((note, index) => (note.includes(mark) ? [{ sys_id: `journal-${index}` }] : []));
      return { status: 200, body: { result: found.slice(0, 1) } };
    }
    const incident = this.incidents.get(sysId);
    if (!incident) return { status: 404, body: { error: { message: 'No Record found' } } };
    for (const [field, value] of Object.entries(body ?? {})) {
      if (field === 'work_notes') incident.workNotes.push(String(value));
      else if (field in incident.fields) incident.fields[field] = String(value);
    }
    return { status: 200, body: { result: incident.fields } };
  }

  #github([, owner, repo, , number]: string[], body: Record<string, unknown> | undefined): Answer {
    const issue = `${owner}/${repo}#${number}`;
    const labels = this.issueLabels.get(issue);
    if (!labels) return { status: 404, body: { message: 'Not Found' } };
    const added = body ? (body.labels as string[]).filter((label) => !labels.includes(label)) : [];
    labels.push(...added);
    return { status: 200, body: labels.map((label) => ({ name: label })) };
  }

  /** Takes a channel's name or id where a message is posted, but only its id where messages are read. */
  #slack(url: URL, method: string, body: Record<string, unknown>): Answer {
    if (method === 'chat.postMessage') return this.#post(body);
    if (method === 'conversations.list') {
      const channels = [...this.channels.keys()].map((name) => ({ id: slackId(name), name: name.slice(1) }));
      return { status: 200, body: { ok: true, channels } };
    }
    const read = [...this.channels].find(([name]) => slackId(name) === url.searchParams.get('channel'));
    if (!read) return { status: 200, body: { ok: false, error: 'channel_not_found' } };
    const oldest = url.searchParams.get('oldest') ?? '';
    const thread = url.searchParams.get('ts') ?? undefined;
    const wanted = read[1].filter(
      ({ ts, thread_ts }) => ts > oldest && (thread === undefined ? !thread_ts : [ts, thread_ts].includes(thread)),
    );
    return { status: 200, body: { ok: true, messages: wanted } };
  }

  #post({ channel, text, metadata, thread_ts }: Record<string, unknown>): Answer {
    const name = [...this.channels.keys()].find((each) => each === channel || slackId(each) === channel);
    if (name === undefined) return { status: 200, body: { ok: false, error: 'channel_not_found' } };
    this.#messages += 1;
    const ts = `${Math.floor(this.#clock.now() / 1000)}.${String(this.#messages).padStart(6, '0')}`;
    const posted: SlackMessage = {
      ts,
      text: String(text),
      metadata,
      ...(thread_ts !== undefined && { thread_ts: String(thread_ts) }),
    };
    this.channels.get(name)?.push(posted);
    return { status: 200, body: { ok: true, channel: slackId(name), ts } };
  }
}

const slackId = (name: string) => `C0${name.slice(1).toUpperCase()}`;

function fetchFailed(code: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
}
