import { readFileSync, writeFileSync } from 'node:fs';
import { EXIT, Failure } from './failure.ts';

export function readFile(file: string): Buffer<ArrayBuffer> {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw fileFailure('read', file, cause);
  }
}

/** `mode`: of a new file. */
export function writeFile(file: string, content: string | Uint8Array, { mode }: { mode?: number } = {}): void {
  try {
    writeFileSync(file, content, { mode });
  } catch (cause) {
    throw fileFailure('write', file, cause);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'it is not a folder',
};

export function fileFailure(verb: 'read' | 'write', file: string, cause: unknown): Failure {
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const reason = verb === 'write' && code === 'ENOENT' ? 'its folder does not exist' : (REASONS[code] ?? message);
  return new Failure(EXIT.usage, `cannot ${verb} ${file}: ${reason}`, { cause });
}

/** Reads a YAML or JSON file that describes one `kind` of thing. The server checks all fields but its id. */
export async function readDefinition<Fields extends object>(
  file: string,
  idField: string,
  kind: string,
): Promise<{ id: string; fields: Fields }> {
  // Only two commands read YAML here; loading the parser would slow down the others.
  const { parse } = await import('yaml');
  const text = readFile(file).toString('utf8');
  let content: Record<string, unknown> | null;
  try {
    content = parse(text);
  } catch (cause) {
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  const { [idField]: id, ...fields } = typeof content === 'object' && content !== null ? content : {};
  if (typeof id === 'string') return { id, fields: fields as Fields };
  throw new Failure(EXIT.usage, `${file} is not ${kind}: "${idField}" is missing`);
}
