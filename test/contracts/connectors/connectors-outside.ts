import { vi } from 'vitest';
import type { Access } from '../../../lambdas/connectors/connector.ts';
import { seededSysId } from '../../../local/simulators/servicenow/seed.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { FakeTargets } from '../../fakes/targets/fake-targets.ts';
import { openWorld, type VendorJson } from '../../local/simulators/world.ts';

export type System = 'servicenow' | 'github' | 'slack' | 'pagerduty';

/** Faults of the next call to a system. `body` alone: the call takes effect and gets 200 with this body. */
export type Fault =
  | { status: number; retryAfterSeconds?: number; body?: unknown }
  | 'lost_answer'
  | 'truncated'
  | { body: unknown };

/** The systems that connectors write to, with an incident, an issue labelled `bug`, and the Slack channel #incidents. */
export interface Outside {
  access: Record<System, Access>;
  /** A call of a system's own API by somebody else. */
  ask(system: System, method: string, path: string, body?: unknown): Promise<VendorJson>;
  /** PagerDuty's events cannot be read back: the keys of its open alerts. */
  openAlerts(): Promise<string[]>;
  fault(system: System, method: string, fault: Fault): Promise<void>;
  /** How many calls of this method a system has received. */
  calls(system: System, method: string): Promise<number>;
  close(): Promise<void>;
}

export const SYS_ID = seededSysId('INC0010001');
export const PROBLEM = seededSysId('PRB0040001');
export const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };

/** Texts that no result and no error may contain: the credential, and texts of the target. */
export const CREDENTIAL_CANARY = 'CANARY-of-the-credential';
export const TARGET_CANARY = 'CANARY-of-the-target';

const CREDENTIALS: Record<System, unknown> = {
  servicenow: { username: 'countersign', password: CREDENTIAL_CANARY },
  github: { token: `local-${CREDENTIAL_CANARY}` },
  slack: { botToken: `xoxb-${CREDENTIAL_CANARY}` },
  pagerduty: { routingKey: CREDENTIAL_CANARY.padEnd(32, '0') },
};

function accessTo(baseUrl: (system: System) => string): Record<System, Access> {
  const one = (system: System) => ({
    baseUrl: baseUrl(system),
    instance: 'acme',
    credential: CREDENTIALS[system],
    ...(system === 'servicenow' && { allowedTables: ['problem'] }),
  });
  return { servicenow: one('servicenow'), github: one('github'), slack: one('slack'), pagerduty: one('pagerduty') };
}

/** In memory, behind their own `fetch`. */
export async function openFakeTargets(): Promise<Outside> {
  const outside = new FakeTargets(new FakeClock());
  vi.stubGlobal('fetch', outside.fetch);
  outside.incidents.set(SYS_ID, {
    fields: { assignment_group: '', due_date: '', number: 'INC0010001', state: '1' },
    workNotes: [],
  });
  const problem = { sys_id: PROBLEM, number: 'PRB0040001', priority: '2', state: '101', assignment_group: '' };
  outside.records.set('problem', new Map([[PROBLEM, { ...problem, sys_mod_count: '0' }]]));
  outside.issueLabels.set('octo-org/payments#7', ['bug']);
  outside.channels.set('#incidents', []);
  return {
    access: accessTo((system) => `http://${system}`),
    ask: async (system, method, path, body) => {
      const sent = body === undefined ? undefined : JSON.stringify(body);
      return (await outside.fetch(`http://${system}${path}`, { method, body: sent })).json();
    },
    openAlerts: async () =>
      outside.alerts.filter(({ status }) => status !== 'resolved').map(({ dedup_key }) => dedup_key),
    fault: async (system, method, fault) => outside.next(`${method} ${system}`, fault),
    calls: async (system, method) => outside.callsOf(`${method} ${system}`).length,
    close: async () => {
      vi.unstubAllGlobals();
    },
  };
}

/** The simulators, behind real HTTP. */
export async function openSimulatedOutside(): Promise<Outside> {
  const world = await openWorld();
  const headers: Record<System, Record<string, string>> = {
    servicenow: { authorization: `Basic ${Buffer.from('somebody:x').toString('base64')}` },
    github: { authorization: 'Bearer local-somebody' },
    slack: { authorization: 'Bearer xoxb-somebody' },
    pagerduty: {},
  };
  const ask: Outside['ask'] = async (system, method, path, body) =>
    (await world.ask(method, `/${system}${path}`, body, headers[system])).body;
  await ask('github', 'POST', '/repos/octo-org/payments/issues/7/labels', { labels: ['bug'] });
  // The simulator creates a channel with its first message.
  await ask('slack', 'POST', '/api/chat.postMessage', { channel: '#incidents', text: 'a first message' });
  return {
    access: accessTo((system) => `${world.url}/_sim/${system}`),
    ask,
    openAlerts: async () => {
      const { alerts } = (await world.ask('GET', '/state')).body;
      const open = alerts.filter(({ status }: { status: string }) => status !== 'resolved');
      return open.map(({ dedup_key }: { dedup_key: string }) => dedup_key);
    },
    fault: async (system, method, fault) => {
      await world.ask('POST', '/faults', { system, method, ...inTheirWords(fault) });
    },
    calls: async (system, method) => (await world.calls(`?system=${system}&method=${method}`)).length,
    close: () => world.close(),
  };
}

function inTheirWords(fault: Fault): object {
  if (fault === 'lost_answer') return { kind: 'lost_answer' };
  if (fault === 'truncated') return { kind: 'truncated_body' };
  return 'status' in fault ? { kind: 'status', ...fault } : { kind: 'other_body', ...fault };
}
