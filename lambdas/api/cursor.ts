import { createHmac } from 'node:crypto';
import { Problem } from '../entry/http.ts';
import { equalInConstantTime } from '../intake/signature.ts';

/** A list's place, signed for one tenant: nobody can make one up, or take one over from another tenant. */
export function sealCursor(position: string, tenant: string, secret: string): string {
  return `${Buffer.from(position).toString('base64url')}.${mac(position, tenant, secret)}`;
}

export function openCursor(cursor: string, tenant: string, secret: string): string {
  const [encoded = '', given = ''] = cursor.split('.');
  const position = Buffer.from(encoded, 'base64url').toString();
  if (!equalInConstantTime(mac(position, tenant, secret), given)) {
    throw new Problem(400, 'BAD_CURSOR', 'this cursor is not one of ours; start the list again without it');
  }
  return position;
}

function mac(position: string, tenant: string, secret: string): string {
  return createHmac('sha256', secret).update(`${tenant}\n${position}`).digest('base64url');
}
