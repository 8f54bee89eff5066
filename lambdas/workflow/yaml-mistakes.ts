import type { ErrorCode, YAMLError } from 'yaml';

export const noAnchor = (name: string) =>
  `there is no "&${name}" before "*${name}"; a text that starts with "*" needs quotes`;
export const ALIASES_EXPLODE = 'its aliases ("*") repeat too much; write out what they stand for';

const NEEDS_QUOTES = 'a text with an expression, or with ": ", quotes or signs in it, needs quotes: "{% ... %}"';

/** Of the mistakes people make most, what to do; the others are told as the parser tells them. */
const WHAT_TO_DO: Partial<Record<ErrorCode, string>> = {
  BAD_SCALAR_START: NEEDS_QUOTES,
  BLOCK_AS_IMPLICIT_KEY: NEEDS_QUOTES,
  BLOCK_IN_FLOW: NEEDS_QUOTES,
  UNEXPECTED_TOKEN: NEEDS_QUOTES,
  BAD_INDENT: 'indent it like its neighbours, and close every "[" and "{"',
  DUPLICATE_KEY: 'this name is there already; keep one of them',
  MISSING_CHAR: 'a quote, ":" or "-" is missing, or it is indented otherwise than its neighbours',
  MULTIPLE_DOCS: 'a file holds one workflow; put what follows "---" into a file of its own',
  TAB_AS_INDENT: 'indent with spaces; a tab does not count',
};

export const yamlMistake = ({ code, message }: Pick<YAMLError, 'code' | 'message'>): string =>
  WHAT_TO_DO[code] ?? `this is not YAML: ${message}`;
