import type { Operation } from '../connectors/connector.ts';
import { encodeUrlValue, PlainUrl } from '../connectors/http/plain-url.ts';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './checks/check-expressions.ts';
import { isConstant, readTemplate } from './expressions/template.ts';

/** Scheme, host and port, and the beginning of path or query: whatever follows cannot change where a request goes. */
const CONSTANT_START = /^https?:\/\/[^/?#]+[/?]/;
const WRITE_OUT =
  'write scheme, host and the first "/" out, and use expressions after them: "https://api.example.com/things/{% ... %}"';

type Input = Record<string, unknown>;

/** The parts of a URL: constant texts, and between them what expressions are to give. */
function partsOf(url: string): string[] {
  const written = readTemplate(url);
  if ('whole' in written) throw new CountersignError('INPUT_INVALID', `the URL is one expression; ${WRITE_OUT}`);
  const parts = written.parts.map((part) => (typeof part === 'string' ? part : `{% ${part.expression} %}`));
  if (parts.length > 1 && !CONSTANT_START.test(parts[0] ?? '')) {
    throw new CountersignError('INPUT_INVALID', `an expression gives a part of the host; ${WRITE_OUT}`);
  }
  return parts;
}

/**
 * A tool's input, evaluated. A URL is evaluated in its parts and then joined, so that it is known which of them are data:
 * every value is encoded and stays where it stands.
 */
export async function renderInput(
  operation: Operation | undefined,
  template: Input,
  render: (template: Input) => Promise<unknown>,
  join: (parts: readonly unknown[]) => unknown = wholeUrl,
): Promise<unknown> {
  const { urlField = '' } = operation ?? {};
  const url = template[urlField];
  if (typeof url !== 'string') return render(template);
  const rendered = (await render({ ...template, [urlField]: partsOf(url) })) as Input;
  return { ...rendered, [urlField]: join(rendered[urlField] as unknown[]) };
}

export function wholeUrl(parts: readonly unknown[]): string {
  let url = '';
  for (const [index, part] of parts.entries()) url += isData(index) ? data(part, url) : String(part);
  return url;
}

/** Between two constant texts stands one expression. */
const isData = (index: number): boolean => index % 2 === 1;

function data(value: unknown, before: string): string {
  const place = before.includes('?') ? 'query' : 'path';
  const given = encodeUrlValue(value, place);
  if ('encoded' in given) return given.encoded;
  throw new CountersignError('INPUT_INVALID', `an expression in the ${place} of the URL ${given.problem}`);
}

/** What is wrong with a URL whatever its expressions will give. */
export function urlProblems({ urlField }: Operation, template: Input): Problem[] {
  const url = urlField === undefined ? undefined : template[urlField];
  if (typeof url !== 'string' || isConstant(url)) return [];
  const problem = (message: string): Problem[] => [{ path: [String(urlField)], message }];
  try {
    const { error } = PlainUrl.safeParse(wholeUrl(partsOf(url).map((part, index) => (isData(index) ? 'x' : part))));
    return error ? problem(error.issues[0]?.message ?? '') : [];
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return problem(error.message);
  }
}
