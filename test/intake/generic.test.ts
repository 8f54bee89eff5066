import { Webhook } from 'standardwebhooks';
import { beforeEach, describe, expect, it } from 'vitest';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import { genericDelivery } from '../../lambdas/intake/generic-delivery.ts';
import { genericSource } from '../../lambdas/intake/signing-secrets.ts';
import { receiveWebhook } from '../../lambdas/intake/webhook.ts';
import { makersOf } from '../../lambdas/people/people.ts';
import { GenericSource } from '../../lambdas/pipeline/generic-source.ts';
import { askAbout } from '../api/definitions/ask-definitions.ts';
import { automation, openIntake } from './intake-world.ts';

const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const [CURRENT, PREVIOUS, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];
const ALERTS = GenericSource.parse({
  name: 'alerts',
  title: '{% trigger.payload.alert.name %} on {% trigger.payload.host %}',
  subject: '{% trigger.payload.host %}',
  actor: '{% trigger.payload.user %}',
  event: '{% trigger.payload.status %}',
});
const ALERT = { alert: { name: 'Disk full', id: 'a-1' }, host: 'db-7', user: 'ana', status: 'firing' };

let intake: ReturnType<typeof openIntake>;
beforeEach(async () => {
  intake = openIntake();
  intake.secrets.change('acme', { 'generic/alerts': [CURRENT, PREVIOUS], 'generic/other': [OTHER] });
  await intake.definitions.saveSource('acme', ALERTS);
  await intake.definitions.saveAutomation('acme', automation('page', { source: 'generic', event: 'alerts.firing' }));
});

interface Sent {
  id?: string;
  secret?: string;
  name?: string;
  tenant?: string;
  ageSeconds?: number;
}

async function send(payload: unknown, sent: Sent = {}) {
  const { id = 'msg_1', secret = CURRENT, name = 'alerts', tenant = 'acme', ageSeconds = 0 } = sent;
  const at = new Date(Math.floor(intake.clock.now() / 1000) * 1000 - ageSeconds * 1000);
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const event = {
    pathParameters: { tenant, source: name },
    body,
    isBase64Encoded: false,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(at.getTime() / 1000),
      'webhook-signature': new Webhook(secret).sign(id, at, body),
    },
  } as unknown as HttpEvent;
  const source = {
    source: genericSource(name),
    delivery: (headers: HttpEvent['headers'], content: unknown) =>
      genericDelivery(intake, { tenant, name }, headers, content),
  };
  const response = await receiveWebhook(intake, source, event);
  return JSON.parse(response.body ?? '') as { runIds: string[]; deduplicated: boolean };
}
const runs = () => [...intake.runs.inside.runs()];

describe('a signed webhook of a source of the tenant', () => {
  it('starts the automations of its event, with title, subject and actor of its definition', async () => {
    const { runIds } = await send(ALERT);
    expect(runIds).toHaveLength(1);
    const { run, trigger } = (await intake.runs.load('acme', runIds[0] ?? '')) ?? {};
    expect(run).toMatchObject({
      subject: 'generic:alerts:db-7',
      trigger: { source: 'generic', event: 'alerts.firing' },
    });
    expect(trigger).toMatchObject({ fields: { title: 'Disk full on db-7', actor: 'ana' }, payload: ALERT });
    const ana = {
      id: 'ana-m',
      name: 'Ana',
      role: 'approver',
      tier: 'high',
      groups: [],
      identities: ['generic:alerts/ana'],
    };
    expect(makersOf([ana as never], { trigger: trigger as never, workflow: {} })).toContain('ana-m');
  });

  it('starts them once: a repeated id changes nothing, and with another body it is a conflict', async () => {
    const first = await send(ALERT);
    expect(await send(ALERT, { ageSeconds: 60 })).toEqual({ ...first, deduplicated: true });
    await expect(send({ ...ALERT, host: 'db-8' })).rejects.toMatchObject({ status: 409, code: 'IDEMPOTENCY_CONFLICT' });
    expect(runs()).toHaveLength(1);
  });

  it('identifies the event by the id of its definition, if it has one', async () => {
    await intake.definitions.saveSource('acme', { ...ALERTS, id: '{% trigger.payload.alert.id %}' });
    const first = await send(ALERT, { id: 'msg_1' });
    expect(await send(ALERT, { id: 'msg_2' })).toEqual({ ...first, deduplicated: true });
  });

  it('is accepted with both secrets during a rotation, and near its time in both directions', async () => {
    for (const [id, sent] of Object.entries({
      a: { secret: PREVIOUS },
      b: { ageSeconds: 290 },
      c: { ageSeconds: -290 },
    })) {
      expect((await send(ALERT, { id, ...sent })).runIds).toHaveLength(1);
    }
  });

  it.each([
    ['another secret', { secret: secretOf(9) }],
    ['the secret of another source', { secret: OTHER }],
    ['an old signature', { ageSeconds: 310 }],
    ['a signature of the future', { ageSeconds: -310 }],
    ['an unknown tenant', { tenant: 'globex' }],
    ['an unknown source', { name: 'pagers' }],
  ])('with %s is refused, and nothing is started', async (_case, sent) => {
    await expect(send(ALERT, sent)).rejects.toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
    expect(runs()).toEqual([]);
  });

  it('accepts any JSON; without the values it has no subject, no actor and the event of its name', async () => {
    await intake.definitions.saveSource('acme', { ...ALERTS, title: 'An alert' });
    await intake.definitions.saveAutomation('acme', automation('any', { source: 'generic', event: 'alerts' }));
    for (const [id, payload] of Object.entries({ a: [1, 2], b: 'text', c: null, d: { user: {} } })) {
      const { runIds } = await send(JSON.stringify(payload), { id });
      const { run, trigger } = (await intake.runs.load('acme', runIds[0] ?? '')) ?? {};
      expect(run).toMatchObject({ automation: 'any', trigger: { event: 'alerts' } });
      expect(run).not.toHaveProperty('subject');
      expect(trigger).toMatchObject({ makers: [] });
    }
  });

  it.each([
    [{ title: '{% $sum(trigger.payload.host) %}' }, 422, 'title of the webhook source alerts'],
    [{ event: '{% trigger.payload.alert.name %}' }, 422, 'event: its value must have'],
    [{ enabled: false }, 404, 'is disabled'],
  ])('with the definition %j is refused with the reason', async (differing, status, text) => {
    await intake.definitions.saveSource('acme', { ...ALERTS, ...differing });
    await expect(send(ALERT)).rejects.toMatchObject({ status, message: expect.stringContaining(text) });
    expect(runs()).toEqual([]);
  });
});

describe('the definition of a source', () => {
  const ask = (route: string, body?: unknown, id = 'alerts') => askAbout(intake.definitions, route, { id, body });

  it('is listed, saved and deleted with an entry in the history, and says where to send', async () => {
    const { name: _name, ...fields } = ALERTS;
    const saved = await ask('PUT /api/v1/sources/{name}', { ...fields, title: 'New' });
    expect(saved.body).toMatchObject({
      path: '/webhooks/generic/acme/alerts',
      secretEntry: 'generic/alerts',
      title: 'New',
    });
    expect((await ask('GET /api/v1/sources')).body.sources).toHaveLength(1);
    await expect(ask('DELETE /api/v1/sources/{name}')).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('page'),
    });
    await ask('PUT /api/v1/sources/{name}', fields, 'unused');
    expect((await ask('DELETE /api/v1/sources/{name}', undefined, 'unused')).body).toEqual({ deleted: 'unused' });
    await expect(ask('DELETE /api/v1/sources/{name}', undefined, 'unused')).rejects.toMatchObject({
      status: 404,
      message: 'there is no webhook source unused; countersign sources list shows all',
    });
    const { items } = await intake.definitions.changes('acme', { limit: 9 });
    expect(items.filter(({ kind }) => kind === 'webhook_source').map(({ action }) => action)).toEqual(
      expect.arrayContaining(['deleted', 'created', 'changed']),
    );
  });

  it('makes the person who last changed how it reads events a maker of the runs that they start', async () => {
    const { name: _name, ...fields } = ALERTS;
    const saveAs = async (person: string, changed: object) =>
      (
        await askAbout(intake.definitions, 'PUT /api/v1/sources/{name}', {
          id: 'alerts',
          body: { ...fields, ...changed },
          as: { person, role: 'admin' },
        })
      ).body.author;
    expect(await saveAs('eve', { subject: 'always the same' })).toBe('eve');
    // Another person saves it with the same texts.
    expect(await saveAs('olivia', { subject: 'always the same', description: 'Alerts' })).toBe('eve');
    const { runIds } = await send(ALERT);
    const { run } = (await intake.runs.load('acme', runIds[0] ?? '')) ?? {};
    expect(run?.makers).toEqual(['eve']);
    expect(await saveAs('olivia', {})).toBe('olivia');
  });

  it.each([
    [{ title: '{% payload.name %}' }, 'unknown name "payload"'],
    [{ title: '{% trigger. %}' }, 'is not JSONata'],
  ])('%j is refused', async (fields, text) => {
    const refused = ask('PUT /api/v1/sources/{name}', fields, 'other');
    await expect(refused).rejects.toMatchObject({
      status: 422,
      code: 'SOURCE_INVALID',
      message: expect.stringContaining(text),
    });
  });

  it('an automation of an unknown source is refused with the nearest name', async () => {
    const body = { trigger: { source: 'generic', event: 'alert.firing' }, workflow: { name: 'label', version: 1 } };
    const refused = ask('PUT /api/v1/automations/{name}', body, 'page-2');
    await expect(refused).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining('did you mean "alerts"'),
    });
  });
});
