import { afterAll, vi } from 'vitest';
import { seededSysId } from '../../local/simulators/servicenow-seed.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { FakeOutside } from '../fakes/fake-outside.ts';
import { BASIC, BEARER, openWorld } from '../local/simulators/world.ts';
import { describeConnectorsContract, type Fault } from './connectors-contract.ts';

const issue = { owner: 'octo-org', repo: 'payments', number: 7 };
const sysId = seededSysId('INC0010001');
const BOT = { authorization: 'Bearer xoxb-local' };
afterAll(() => vi.unstubAllGlobals());

describeConnectorsContract('the fake outside', async () => {
  const outside = new FakeOutside(new FakeClock());
  vi.stubGlobal('fetch', outside.fetch);
  outside.incidents.set(sysId, { fields: { assignment_group: '', number: 'INC0010001' }, workNotes: [] });
  outside.issueLabels.set('octo-org/payments#7', ['bug']);
  outside.channels.set('#incidents', []);
  return {
    access: outside.access(),
    sysId,
    issue,
    fault: async (system, method, fault) => outside.next(`${method} ${system}`, fault),
    incident: async () => {
      const { fields, workNotes } = outside.incidents.get(sysId) ?? { fields: {}, workNotes: [] };
      return { assignmentGroup: fields.assignment_group ?? '', workNotes };
    },
    labels: async () => outside.issueLabels.get('octo-org/payments#7') ?? [],
    messages: async () => (outside.channels.get('#incidents') ?? []).map(({ text }) => text),
    methods: async (system) =>
      outside.calls.flatMap(({ name }) => (name.endsWith(system) ? [name.split(' ')[0] ?? ''] : [])),
    close: async () => {
      vi.unstubAllGlobals();
    },
  };
});

/** A fault in the simulators' words. */
function ordered(fault: Fault): object {
  if (fault === 'lost_answer') return { kind: 'lost_answer' };
  return fault === 'truncated' ? { kind: 'truncated_body' } : { kind: 'status', ...fault };
}

describeConnectorsContract('the simulators', async () => {
  const world = await openWorld();
  const labelsPath = '/github/repos/octo-org/payments/issues/7/labels';
  await world.ask('POST', labelsPath, { labels: ['bug'] }, BEARER);
  // A channel of the simulator comes to be with its first message.
  const first = { channel: '#incidents', text: 'a first message' };
  const posted = await world.ask('POST', '/slack/api/chat.postMessage', first, BOT);
  await world.ask('DELETE', '/calls');
  const at = (system: string) => ({ baseUrl: `${world.url}/_sim/${system}`, instance: 'acme' });
  return {
    access: {
      servicenow: { ...at('servicenow'), credential: { username: 'countersign', password: 'x' } },
      github: { ...at('github'), credential: { token: 'local-github-token' } },
      slack: { ...at('slack'), credential: { botToken: 'xoxb-local' } },
    },
    sysId,
    issue,
    fault: async (system, method, fault) => {
      await world.ask('POST', '/faults', { system, method, ...ordered(fault) });
    },
    incident: async () => {
      const table = '/servicenow/api/now/table';
      const { body } = await world.ask('GET', `${table}/incident/${sysId}`, undefined, BASIC);
      const query = `sysparm_query=element_id=${sysId}^element=work_notes`;
      const journal = await world.ask('GET', `${table}/sys_journal_field?${query}`, undefined, BASIC);
      return {
        assignmentGroup: body.result.assignment_group.value ?? body.result.assignment_group,
        workNotes: journal.body.result.map(({ value }: { value: string }) => value),
      };
    },
    labels: async () =>
      (await world.ask('GET', labelsPath, undefined, BEARER)).body.map(({ name }: { name: string }) => name),
    messages: async () => {
      const path = `/slack/api/conversations.history?channel=${posted.body.channel}`;
      const { body } = await world.ask('GET', path, undefined, BOT);
      return body.messages.map(({ text }: { text: string }) => text);
    },
    methods: async (system) => (await world.calls(`?system=${system}`)).map(({ method }) => String(method)),
    close: () => world.close(),
  };
});
