import { createHmac } from 'node:crypto';
import { Problem } from '../../entry/http.ts';
import { equalInConstantTime } from '../../intake/signature.ts';

/** A place in one list, whose name begins with its tenant: nobody can make one up, or take one over from another list. */
export function sealCursor(position: string, list: string, secret: string): string {
  return `${Buffer.from(position).toString('base64url')}.${mac(position, list, secret)}`;
}

export function openCursor(cursor: string, list: string, secret: string): string {
  const [encoded = '', given = ''] = cursor.split('.');
  const position = Buffer.from(encoded, 'base64url').toString();
  if (!equalInConstantTime(mac(position, list, secret), given)) {
    throw new Problem(400, 'BAD_CURSOR', 'this cursor is not one of ours; start the list again without it');
  }
  return position;
}

function mac(position: string, list: string, secret: string): string {
  return createHmac('sha256', secret).update(`${list}\n${position}`).digest('base64url');
}
