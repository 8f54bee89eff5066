import type { Operation } from '../connectors/connector.ts';
import { encodeUrlValue, PlainUrl } from '../connectors/http/plain-url.ts';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './checks/check-expressions.ts';
import { isConstant, readTemplate } from './expressions/template.ts';

/** Scheme, host, port and the start of the path or query. Text after that cannot change the host. */
const CONSTANT_START = /^https?:\/\/[^/?#]+[/?]/;
const CONSTANT_HOST = 'scheme, host and the first "/" must be constant: "https://api.example.com/things/{% ... %}"';

type Input = Record<string, unknown>;

/** Constant texts alternate with expressions. */
function partsOf(url: string): string[] {
  const parsed = readTemplate(url);
  if ('whole' in parsed) throw new CountersignError('INPUT_INVALID', `the URL is one expression; ${CONSTANT_HOST}`);
  const parts = parsed.parts.map((part) => (typeof part === 'string' ? part : `{% ${part.expression} %}`));
  if (parts.length > 1 && !CONSTANT_START.test(parts[0] ?? '')) {
    throw new CountersignError('INPUT_INVALID', `the host contains an expression; ${CONSTANT_HOST}`);
  }
  return parts;
}

/**
 * Evaluates a tool's input. A URL is evaluated in parts, so that each value is encoded and cannot change the other parts.
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

/** Every second part is an expression. */
const isData = (index: number): boolean => index % 2 === 1;

function data(value: unknown, before: string): string {
  const place = before.includes('?') ? 'query' : 'path';
  const given = encodeUrlValue(value, place);
  if ('encoded' in given) return given.encoded;
  throw new CountersignError('INPUT_INVALID', `an expression in the ${place} of the URL ${given.problem}`);
}

/** Finds mistakes in a URL that no value of its expressions can fix. */
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
