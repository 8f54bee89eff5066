import { createHash, createHmac, randomUUID } from 'node:crypto';

/** A request as a webhook sender would make it, signed and ready to be sent. */
export interface WebhookRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

interface GithubOptions {
  event?: string;
  deliveryId?: string;
  tenant?: string;
  secret?: string;
}

/** What a body of these events always has. */
const SUBJECTS: Record<string, (id: string) => object> = {
  fork: (id) => ({ forkee: { node_id: id } }),
  release: (id) => ({ release: { node_id: id } }),
  star: (id) => ({ action: 'created', starred_at: id }),
  watch: (id) => ({ action: 'started', repository: { node_id: id } }),
};

/** Each payload that is not a text is made unique, as GitHub's payloads are by their times. */
export function githubRequest(payload: unknown, options: GithubOptions = {}): WebhookRequest {
  const { event = 'issues', deliveryId = randomUUID(), tenant = 'acme', secret = 'local-github-secret' } = options;
  const unique = options.deliveryId === undefined && { ...SUBJECTS[event]?.(deliveryId), sent: deliveryId };
  const body = typeof payload === 'string' ? payload : JSON.stringify({ ...unique, ...(payload as object) });
  return {
    path: `/webhooks/github/${tenant}`,
    headers: {
      'content-type': 'application/json',
      'x-github-event': event,
      'x-github-delivery': deliveryId,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    },
    body,
  };
}

/** The fields that the product uses of GitHub's webhook for an opened issue. */
export function issueOpened(number: number, repository = 'octo-org/payments') {
  return {
    action: 'opened',
    issue: {
      number,
      title: `Payments fail in region ${number}`,
      html_url: `https://github.com/${repository}/issues/${number}`,
      user: { login: 'mona' },
      labels: [],
    },
    repository: {
      name: repository.split('/')[1],
      full_name: repository,
      html_url: `https://github.com/${repository}`,
    },
    sender: { login: 'mona' },
  };
}

interface ServicenowOptions {
  id?: string;
  /** Milliseconds of the time that is signed. */
  atMs?: number;
  tenant?: string;
  secret?: string;
}

/** Standard Webhooks: signed over `id.timestamp.body`. */
export function servicenowRequest(payload: unknown, options: ServicenowOptions = {}): WebhookRequest {
  const {
    id = `msg_${randomUUID()}`,
    atMs = Date.now(),
    tenant = 'acme',
    secret = 'local-servicenow-secret',
  } = options;
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const timestamp = String(Math.floor(atMs / 1000));
  const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    path: `/webhooks/servicenow/${tenant}`,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${mac}`,
    },
    body,
  };
}

export interface Incident {
  sysId: string;
  number: string;
  record: Record<string, string>;
}

/** An incident named so that it is found again among the calls: the same name, the same incident. */
export function incident(name: string, fields: Record<string, string> = {}): Incident {
  const sysId = createHash('md5').update(`incident ${name}`).digest('hex');
  const number = `INC${Number.parseInt(sysId.slice(0, 10), 16)}`;
  return {
    sysId,
    number,
    record: { number, short_description: `Database ${name} is slow`, category: 'database', priority: '1', ...fields },
  };
}

export function incidentInserted({ sysId, record }: Incident, modCount = 0) {
  return {
    instance: 'acme',
    table: 'incident',
    operation: 'insert',
    sys_id: sysId,
    sys_mod_count: modCount,
    record,
  };
}
