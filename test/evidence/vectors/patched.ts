import { type Fields, indexOf, type Json } from '../verify/second-verifier.ts';

/** As JSON Patch (RFC 6902) has them, of the operations that vectors need. */
export interface Operation {
  op: 'replace' | 'add' | 'remove';
  /** `/approvals/0/makers`; `/steps/-` is behind the last. */
  path: string;
  value?: Json;
}

/** The document with these changes and, by default, with a new index. */
export function patched(document: string, patch: readonly Operation[], keepsIndex = false): Json {
  const read: Fields = JSON.parse(document);
  for (const { op, path, value = null } of patch) {
    const names = path.split('/').slice(1);
    const last = names.pop() ?? '';
    const holder = names.reduce<Fields>((each, name) => each[name] as Fields, read);
    if (Array.isArray(holder)) {
      const place = last === '-' ? holder.length : Number(last);
      holder.splice(place, op === 'add' ? 0 : 1, ...(op === 'remove' ? [] : [value]));
    } else if (op === 'remove') delete holder[last];
    else holder[last] = value;
  }
  return keepsIndex ? read : { ...read, index: indexOf(read) };
}
