import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { servicenowDelivery } from '../../../lambdas/intake/servicenow-delivery.ts';
import { isSigned } from '../../../lambdas/intake/signature.ts';
import { ROOT } from '../command-line.ts';

const DOCUMENT = readFileSync(join(ROOT, 'docs', 'servicenow.md'), 'utf8');
const [RULE = '', CHECK = ''] = Array.from(DOCUMENT.matchAll(/```js\n(.*?)```/gs), ([, script = '']) => script);
const [COMPARE = ''] = Array.from(DOCUMENT.matchAll(/```sh\n(.*?)```/gs), ([, script = '']) => script);
const SECRET = 'a secret of the tenant';
const SCOPED = 'x_acme_hooks';

const SAMPLE = JSON.parse(readFileSync(join(ROOT, 'events', 'servicenow-incident-p1.json'), 'utf8'));

interface SentRequest {
  endpoint: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  sent: boolean;
}

/** The parts of ServiceNow that the rule uses: the HMAC takes and returns base64, a GlideRecord returns text or null. */
function serviceNow(fields: Record<string, string>, scope = 'rhino.global') {
  const request: SentRequest = { endpoint: '', method: '', headers: {}, body: '', sent: false };
  const printed: string[] = [];
  const prefix = scope === 'rhino.global' ? '' : `${scope}.`;
  const properties: Record<string, string> = {
    instance_name: SAMPLE.instance,
    [`${prefix}countersign.webhook.url`]: 'https://stage.example.com/webhooks/servicenow/acme',
    [`${prefix}countersign.webhook.secret`]: SECRET,
  };
  class RESTMessageV2 {
    setEndpoint = (endpoint: string) => Object.assign(request, { endpoint });
    setHttpMethod = (method: string) => Object.assign(request, { method });
    setHttpTimeout = () => {};
    setRequestHeader = (name: string, value: string) => Object.assign(request.headers, { [name]: value });
    setRequestBody = (body: string) => Object.assign(request, { body });
    executeAsync = () => Object.assign(request, { sent: true });
  }
  class Encryption {
    generateMac = (key: string, algorithm: string, data: string) => {
      expect(algorithm).toBe('HmacSHA256');
      // Latin-1 on purpose: the signature of the rule must not depend on how ServiceNow encodes text.
      return createHmac('sha256', Buffer.from(key, 'base64')).update(data, 'latin1').digest('base64');
    };
  }
  const globals = {
    current: {
      getValue: (field: string) => fields[field] ?? null,
      opened_by: { user_name: fields['opened_by.user_name'], name: fields['opened_by.name'] },
      getTableName: () => SAMPLE.table,
      operation: () => 'insert',
      getUniqueValue: () => SAMPLE.sys_id,
    },
    previous: null,
    gs: {
      getProperty: (name: string) => properties[name],
      generateGUID: () => '0f'.repeat(16),
      getCurrentScopeName: () => scope,
      info: (text: string) => printed.push(text),
    },
    GlideStringUtil: { base64Encode: (text: string) => Buffer.from(text).toString('base64') },
    // Each scope knows the class by one name only; the other one is not defined there.
    ...(scope === 'rhino.global' ? { GlideCertificateEncryption: Encryption } : { CertificateEncryption: Encryption }),
    sn_ws: { RESTMessageV2 },
  };
  return { request, printed, run: (script: string) => runInNewContext(script, globals) };
}

test.each(['rhino.global', SCOPED])(
  'the documented business rule in the scope %s sends what the intake accepts',
  (scope) => {
    const instance = serviceNow({ ...SAMPLE.record, sys_mod_count: '0' }, scope);
    instance.run(RULE);
    const { request } = instance;
    expect(request).toMatchObject({
      method: 'POST',
      endpoint: 'https://stage.example.com/webhooks/servicenow/acme',
      sent: true,
    });
    const isSignedWith = (secret: string) =>
      isSigned('servicenow', [secret], Buffer.from(request.body), request.headers, Date.now());
    expect(isSignedWith(SECRET)).toBe(true);
    expect(isSignedWith('another secret of a tenant')).toBe(false);
    expect(servicenowDelivery(JSON.parse(request.body))).toEqual(servicenowDelivery(SAMPLE));
  },
);

test('the rule sends the sample in events/', () => {
  const instance = serviceNow({ ...SAMPLE.record, sys_mod_count: '0' });
  instance.run(RULE);
  expect(JSON.parse(instance.request.body)).toEqual(SAMPLE);
});

test('text in any language arrives unchanged', () => {
  const short_description = 'Köln: 支払い 🚒 "kaputt"\n';
  const instance = serviceNow({ short_description, sys_mod_count: '3' });
  instance.run(RULE);
  const { record } = JSON.parse(instance.request.body);
  expect(record.short_description).toBe(short_description);
  expect(instance.request.body).toMatch(/^[\x20-\x7e]+$/);
});

describe.each(['rhino.global', SCOPED])('the documented check in the scope %s', (scope) => {
  const expected = createHmac('sha256', SECRET).update('msg_1.1700000000.{}').digest('base64');

  test('prints the signature made with the property', () => {
    const { printed, run } = serviceNow({}, scope);
    run(CHECK);
    expect(printed).toEqual([expected]);
  });

  test('matches the output of the documented command', () => {
    const command = COMPARE.replace("'<the secret>'", `'${SECRET}'`);
    expect(execFileSync('sh', ['-c', command]).toString().trim()).toBe(expected);
  });

  test('reports a missing property', () => {
    const { printed, run } = serviceNow({}, scope);
    run(CHECK.replace('countersign.webhook.secret', 'countersign.webhook.other'));
    expect(printed).toEqual([`there is no property countersign.webhook.secret in the scope ${scope}`]);
  });
});
