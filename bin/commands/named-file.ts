import { parse } from 'yaml';
import { EXIT, Failure } from './failure.ts';
import { read } from './webhook/send.ts';

/** A YAML or JSON file about one thing. The server checks what it says; only its name must be known to ask. */
export function readNamed<Name extends string>(
  file: string,
  name: Name,
  what: string,
): Record<Name, string> & Record<string, unknown> {
  const text = read(file).toString('utf8');
  try {
    const content: unknown = parse(text);
    const named =
      typeof content === 'object' && content !== null ? (content as Record<string, unknown>)[name] : undefined;
    if (typeof named === 'string') return { ...(content as object), [name]: named } as Record<Name, string>;
  } catch (cause) {
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  throw new Failure(EXIT.usage, `${file} is no ${what}: it has no ${name}`);
}
