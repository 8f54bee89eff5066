import type { ProposedAction } from '../../../lambdas/policy/policy.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';

/** Whether a request has exactly the target and the values of the action that was decided on. */
export function matchesAction({ method, url, body = {} }: TargetRequest, { target, fields }: ProposedAction): boolean {
  const parts = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  const last = parts.at(-1) ?? '';
  switch (url.hostname) {
    case 'servicenow': {
      if (!target.endsWith(`:${last}`)) return false;
      const { work_notes: note, ...values } = body;
      if (note === undefined) return same(values, fields);
      return Object.keys(values).length === 0 && beginsWith(note, fields.note);
    }
    case 'slack':
      return target === `slack:${body.channel}` && body.text === fields.text;
    case 'github': {
      const [, owner, repo, , number, part] = parts;
      if (number === 'comments') return method === 'DELETE' && Number(last) === fields.commentId;
      if (target !== `github:${owner}/${repo}#${number}`) return false;
      if (part === 'comments') return beginsWith(body.body, fields.body);
      return method === 'DELETE' ? asList(fields.labels).includes(last) : same(body.labels, fields.labels);
    }
    case '127.0.0.1':
      return url.href === fields.url && method === fields.method && same(body, fields.body);
    default:
      return false;
  }
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
/** The mark follows. */
const beginsWith = (sent: unknown, wanted: unknown) => String(sent).startsWith(`${wanted}\n`);
