import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { servicenowDelivery } from '../../lambdas/intake/servicenow-delivery.ts';
import { isSignedAsStandardWebhook } from '../../lambdas/intake/signature.ts';
import { ROOT } from './command-line.ts';

const DOCUMENT = readFileSync(join(ROOT, 'docs', 'servicenow.md'), 'utf8');
const [RULE = '', CHECK = ''] = Array.from(DOCUMENT.matchAll(/```js\n(.*?)```/gs), ([, script = '']) => script);
const SECRET = 'a secret of the tenant';

const SAMPLE = JSON.parse(readFileSync(join(ROOT, 'events', 'servicenow-incident-p1.json'), 'utf8'));

interface SentRequest {
  endpoint: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  sent: boolean;
}

/** ServiceNow as far as the rule asks for it: the HMAC takes and gives base64, a GlideRecord gives text or null. */
function serviceNow(fields: Record<string, string>) {
  const request: SentRequest = { endpoint: '', method: '', headers: {}, body: '', sent: false };
  const printed: string[] = [];
  const properties: Record<string, string> = {
    instance_name: SAMPLE.instance,
    'countersign.webhook.url': 'https://stage.example.com/webhooks/servicenow/acme',
    'countersign.webhook.secret': SECRET,
  };
  class RESTMessageV2 {
    setEndpoint = (endpoint: string) => Object.assign(request, { endpoint });
    setHttpMethod = (method: string) => Object.assign(request, { method });
    setHttpTimeout = () => {};
    setRequestHeader = (name: string, value: string) => Object.assign(request.headers, { [name]: value });
    setRequestBody = (body: string) => Object.assign(request, { body });
    executeAsync = () => Object.assign(request, { sent: true });
  }
  class CertificateEncryption {
    generateMac = (key: string, algorithm: string, data: string) => {
      expect(algorithm).toBe('HmacSHA256');
      // Latin-1 on purpose: what the rule signs must not depend on how ServiceNow encodes text.
      return createHmac('sha256', Buffer.from(key, 'base64')).update(data, 'latin1').digest('base64');
    };
  }
  const globals = {
    current: {
      getValue: (field: string) => fields[field] ?? null,
      opened_by: { user_name: fields['opened_by.user_name'] },
      getTableName: () => SAMPLE.table,
      operation: () => 'insert',
      getUniqueValue: () => SAMPLE.sys_id,
    },
    previous: null,
    gs: {
      getProperty: (name: string) => properties[name],
      generateGUID: () => '0f'.repeat(16),
      print: (text: string) => printed.push(text),
    },
    GlideStringUtil: { base64Encode: (text: string) => Buffer.from(text).toString('base64') },
    CertificateEncryption,
    sn_ws: { RESTMessageV2 },
  };
  return { request, printed, run: (script: string) => runInNewContext(script, globals) };
}

test('the documented business rule sends what the intake takes, signed as it wants it', () => {
  const instance = serviceNow({ ...SAMPLE.record, sys_mod_count: '0' });
  instance.run(RULE);
  const { request } = instance;
  expect(request).toMatchObject({
    method: 'POST',
    endpoint: 'https://stage.example.com/webhooks/servicenow/acme',
    sent: true,
  });
  const headers = {
    id: request.headers['webhook-id'],
    timestamp: request.headers['webhook-timestamp'],
    signature: request.headers['webhook-signature'],
  };
  expect(isSignedAsStandardWebhook([SECRET], Buffer.from(request.body), headers, Date.now())).toBe(true);
  expect(isSignedAsStandardWebhook(['another'], Buffer.from(request.body), headers, Date.now())).toBe(false);
  expect(servicenowDelivery(JSON.parse(request.body))).toEqual(servicenowDelivery(SAMPLE));
});

test('the sample in events/ is what the rule sends', () => {
  const instance = serviceNow({ ...SAMPLE.record, sys_mod_count: '0' });
  instance.run(RULE);
  expect(JSON.parse(instance.request.body)).toEqual(SAMPLE);
});

test('text in any language arrives as it was written', () => {
  const short_description = 'Köln: 支払い 🚒 "kaputt"\n';
  const instance = serviceNow({ short_description, sys_mod_count: '3' });
  instance.run(RULE);
  const { record } = JSON.parse(instance.request.body);
  expect(record.short_description).toBe(short_description);
  expect(instance.request.body).toMatch(/^[\x20-\x7e]+$/);
});

test('the documented check prints what the document says', () => {
  const { printed, run } = serviceNow({});
  run(CHECK);
  expect(printed).toHaveLength(1);
  expect(DOCUMENT).toContain(`it must print \`${printed[0]}\``);
});
