import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Access, Operation, Performance } from '../../lambdas/connectors/connector.ts';
import { addLabels } from '../../lambdas/connectors/github.ts';
import { addWorkNote, updateIncident } from '../../lambdas/connectors/servicenow.ts';
import { postMessage } from '../../lambdas/connectors/slack.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { WriteResult } from '../../lambdas/run/receipt.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

type System = 'servicenow' | 'github' | 'slack';

/** What may befall the next call to a system. */
export type Fault = { status: number; retryAfterSeconds?: number } | 'lost_answer' | 'truncated';

/** The systems that connectors write to, with an incident, an issue labelled `bug`, and the Slack channel #incidents. */
export interface Outside {
  access: Record<System, Access>;
  sysId: string;
  issue: { owner: string; repo: string; number: number };
  fault(system: System, method: string, fault: Fault): Promise<void>;
  incident(): Promise<{ assignmentGroup: string; workNotes: string[] }>;
  labels(): Promise<string[]>;
  /** Texts of the messages in #incidents. */
  messages(): Promise<string[]>;
  /** Methods of the calls a system received, in order. */
  methods(system: System): Promise<string[]>;
  close(): Promise<void>;
}

export function describeConnectorsContract(name: string, open: () => Promise<Outside>): void {
  describe(`connectors, on ${name}`, () => {
    let outside: Outside;
    beforeEach(async () => {
      outside = await open();
    });
    afterEach(() => outside.close());

    function performance(operation: Operation, differing: Partial<Performance> = {}): Performance {
      const access = outside.access[operation.connection as System];
      return { access, mark: 'countersign:0123456789', openSince: STORY_BEGINS_AT, firstAttempt: true, ...differing };
    }
    const perform = (operation: Operation, input: unknown, differing: Partial<Performance> = {}) =>
      operation.perform(operation.parse(input), performance(operation, differing));
    const probe = async (operation: Operation, input: unknown, differing: Partial<Performance> = {}) =>
      operation.probe?.(operation.parse(input), performance(operation, differing));

    const FAILURES: [string, Fault, object][] = [
      [
        '429 with Retry-After as a refusal that says when to come back',
        { status: 429, retryAfterSeconds: 7 },
        { code: 'TARGET_REFUSED', retryable: true, retryAfterMs: 7_000 },
      ],
      ['500 as unknown', { status: 500 }, { code: 'OUTCOME_UNKNOWN' }],
      ['503 as unknown', { status: 503 }, { code: 'OUTCOME_UNKNOWN' }],
      ['a lost answer as unknown', 'lost_answer', { code: 'OUTCOME_UNKNOWN' }],
      ['a truncated answer as unknown', 'truncated', { code: 'OUTCOME_UNKNOWN' }],
      ['403 as a final refusal', { status: 403 }, { code: 'TARGET_REFUSED', retryable: false }],
    ];

    describe('servicenow.incident.update', () => {
      const group = '7db8c0366047d2b436c8dcd13dde2bf8';
      const input = (assignment_group = group) => ({ sysId: outside.sysId, fields: { assignment_group } });

      it('sets fields, and knows what was there and how to go back', async () => {
        const { before, reversal, output, response } = await perform(updateIncident, input());
        expect((await outside.incident()).assignmentGroup).toBe(group);
        expect(before).toEqual({ assignment_group: '' });
        expect(output).toMatchObject({ sysId: outside.sysId });
        expect(response).toEqual({ status: 200 });
        expect(reversal).toEqual({ tool: 'servicenow.incident.update', input: input('') });
        await perform(updateIncident, reversalInput(reversal));
        expect((await outside.incident()).assignmentGroup).toBe('');
      });

      it('claims no before-state when an earlier attempt may have worked', async () => {
        const result = await perform(updateIncident, input(), { firstAttempt: false });
        expect(result).not.toHaveProperty('before');
        expect(result.reversal).toHaveProperty('irreversible');
        expect(await outside.methods('servicenow')).toEqual(['PATCH']);
      });

      it.each(FAILURES)('takes %s', async (_what, fault, failure) => {
        await outside.fault('servicenow', 'PATCH', fault);
        await expect(perform(updateIncident, input())).rejects.toMatchObject(failure);
      });

      it('takes a failed read before the write as a refusal to be tried again: nothing was written', async () => {
        await outside.fault('servicenow', 'GET', 'lost_answer');
        const refused = { code: 'TARGET_REFUSED', retryable: true };
        await expect(perform(updateIncident, input())).rejects.toMatchObject(refused);
        expect(await outside.methods('servicenow')).not.toContain('PATCH');
      });

      it('takes a missing incident as a final refusal', async () => {
        const missing = { ...input(), sysId: '0'.repeat(32) };
        await expect(perform(updateIncident, missing)).rejects.toMatchObject({
          code: 'TARGET_REFUSED',
          retryable: false,
        });
      });

      it('takes a 200 that did not set the field as a final refusal', async () => {
        const ignored = { sysId: outside.sysId, fields: { no_such_column: 'x' } };
        const refused = { code: 'TARGET_REFUSED', retryable: false, message: /no_such_column/ };
        await expect(perform(updateIncident, ignored)).rejects.toMatchObject({
          ...refused,
          message: expect.stringMatching(refused.message),
        });
      });
    });

    describe('servicenow.incident.add_work_note', () => {
      const input = () => ({ sysId: outside.sysId, note: 'Routed to Database.' });

      it('adds the note with its mark, and says that it stays', async () => {
        const { reversal } = await perform(addWorkNote, input());
        expect((await outside.incident()).workNotes).toEqual(['Routed to Database.\n[countersign:0123456789]']);
        expect(reversal).toHaveProperty('irreversible');
      });

      it('finds its note after a lost answer', async () => {
        await outside.fault('servicenow', 'PATCH', 'lost_answer');
        await expect(perform(addWorkNote, input())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
        expect(await probe(addWorkNote, input())).toMatchObject({ recovered: true, output: { sysId: outside.sysId } });
      });

      it('does not find a note that is not there, nor another write’s', async () => {
        expect(await probe(addWorkNote, input())).toBeUndefined();
        await perform(addWorkNote, input(), { mark: 'countersign:another' });
        expect(await probe(addWorkNote, input())).toBeUndefined();
      });

      it('takes a probe without an answer as a refusal to be tried again', async () => {
        await outside.fault('servicenow', 'GET', { status: 503 });
        await expect(probe(addWorkNote, input())).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: true });
      });
    });

    describe('github.labels.add', () => {
      const input = (...labels: string[]) => ({ ...outside.issue, labels });

      it('adds labels beside those that are there, and would take away only what it added', async () => {
        const { before, reversal, output } = await perform(addLabels, input('bug', 'triage'));
        expect(await outside.labels()).toEqual(['bug', 'triage']);
        expect(before).toEqual({ labels: ['bug'] });
        expect(output).toEqual({ labels: ['bug', 'triage'] });
        expect(reversal).toEqual({ tool: 'github.labels.remove', input: input('triage') });
      });

      it('has nothing to take back when it changed nothing', async () => {
        expect((await perform(addLabels, input('bug'))).reversal).toHaveProperty('irreversible');
      });

      it.each(FAILURES)('takes %s', async (_what, fault, failure) => {
        await outside.fault('github', 'POST', fault);
        await expect(perform(addLabels, input('triage'))).rejects.toMatchObject(failure);
      });

      it('may be repeated after a lost answer: twice is the same as once', async () => {
        await outside.fault('github', 'POST', 'lost_answer');
        await expect(perform(addLabels, input('triage'))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
        await perform(addLabels, input('triage'), { firstAttempt: false });
        expect(await outside.labels()).toEqual(['bug', 'triage']);
      });
    });

    describe('slack.message.post', () => {
      const input = { channel: '#incidents', text: 'INC0010001 → Database' };

      it('posts once, and says where', async () => {
        const { output, reversal } = await perform(postMessage, input);
        expect((await outside.messages()).filter((text) => text === input.text)).toHaveLength(1);
        expect(output).toEqual({ channel: expect.any(String), ts: expect.stringMatching(/^\d+\.\d{6}$/) });
        expect(reversal).toHaveProperty('irreversible');
      });

      it.each(FAILURES)('takes %s', async (_what, fault, failure) => {
        await outside.fault('slack', 'POST', fault);
        await expect(perform(postMessage, input)).rejects.toMatchObject(failure);
      });

      it('finds its message after a lost answer', async () => {
        await outside.fault('slack', 'POST', 'lost_answer');
        await expect(perform(postMessage, input)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
        const posted = await probe(postMessage, input);
        expect(posted).toMatchObject({ recovered: true, response: { ts: expect.any(String) } });
      });

      it('does not find a message that is not there, nor another write’s', async () => {
        expect(await probe(postMessage, input)).toBeUndefined();
        await perform(postMessage, input, { mark: 'countersign:another' });
        expect(await probe(postMessage, input)).toBeUndefined();
      });

      it('settles nothing about a channel that is not listed', async () => {
        const elsewhere = { ...input, channel: '#nowhere' };
        await expect(probe(postMessage, elsewhere)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
      });

      it('looks back to where the write was first intended, and not further', async () => {
        await perform(postMessage, input);
        const from = (ms: number) => probe(postMessage, input, { openSince: later(STORY_BEGINS_AT, ms) });
        expect(await from(-3_600_000)).toMatchObject({ recovered: true });
        expect(await from(3_600_000)).toBeUndefined();
      });

      it('finds its reply in a thread, and only there', async () => {
        const { ts } = (await perform(postMessage, input, { mark: 'countersign:parent' })).output as { ts: string };
        const reply = { ...input, threadTs: ts };
        expect(await probe(postMessage, reply)).toBeUndefined();
        await perform(postMessage, reply);
        expect(await probe(postMessage, reply)).toMatchObject({ recovered: true });
        expect(await probe(postMessage, input)).toBeUndefined();
      });
    });
  });
}

function reversalInput(reversal: WriteResult['reversal']): unknown {
  if (!('tool' in reversal)) throw new Error(reversal.irreversible);
  return reversal.input;
}
