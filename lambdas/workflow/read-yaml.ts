import {
  type Alias,
  Composer,
  type CST,
  type Document,
  type ErrorCode,
  Lexer,
  LineCounter,
  Parser,
  type Scalar,
  visit,
  type YAMLError,
} from 'yaml';

/** Far more than people write. Parsing needs time and stack for each value, not only for each byte. */
const YAML_DEPTH_MAX = 40;
const YAML_ALIASES_MAX = 100;
const YAML_TOKENS_MAX = 60_000;

export interface Mistake {
  line: number;
  message: string;
}

export type ReadYaml = { document: Document; lineAt: (offset: number) => number } | { mistakes: Mistake[] };

/** Parses one YAML document within limits for nesting, aliases and tokens. */
export function readYaml(text: string): ReadYaml {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const tokens = tokensOf(text, lines);
  if ('message' in tokens) return { mistakes: [{ line: lineAt(tokens.offset), message: tokens.message }] };
  const composed = new Composer({ logLevel: 'error', prettyErrors: false }).compose(tokens, true, text.length);
  const [document, ...others] = [...composed];
  if (!document) return { mistakes: [{ line: 1, message: 'the file is empty' }] };
  const mistakes = [
    ...document.errors.map((error) => ({ line: lineAt(error.pos[0]), message: yamlMessage(error) })),
    ...unknownAliases(document).map(({ source, range }) => ({
      line: lineAt(range?.[0] ?? 0),
      message: unknownAnchor(source),
    })),
    ...numbersBeyondJson(document).map(({ source, range }) => ({
      line: lineAt(range?.[0] ?? 0),
      message: notFinite(source),
    })),
    ...others.slice(0, 1).map(({ range }) => ({
      line: lineAt(range[0]),
      message: yamlMessage({ code: 'MULTIPLE_DOCS', message: '' }),
    })),
  ];
  return mistakes.length > 0 ? { mistakes: firstOfEachLine(mistakes) } : { document, lineAt };
}

/** Further mistakes on the same line are mostly consequences of the first. */
function firstOfEachLine(mistakes: Mistake[]): Mistake[] {
  const first = new Map<number, Mistake>();
  for (const mistake of mistakes) if (!first.has(mistake.line)) first.set(mistake.line, mistake);
  return [...first.values()];
}

interface Excess {
  offset: number;
  message: string;
}

const TOO_DEEP = `values nest deeper than ${YAML_DEPTH_MAX} levels; use fewer levels`;
const TOO_MUCH = 'the file has too many values; split it';
const TOO_MANY_ALIASES = `the file has more than ${YAML_ALIASES_MAX} aliases ("*"); replace them by their values`;

/** Stops at the first token that exceeds a limit. */
function tokensOf(text: string, lines: LineCounter): CST.Token[] | Excess {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let aliases = 0;
  let tokenCount = 0;
  for (const token of new Lexer().lex(text)) {
    tokenCount += 1;
    if (token.startsWith('*')) aliases += 1;
    tokens.push(...parser.next(token));
    const message = excess({ depth: parser.stack.length, aliases, tokenCount });
    if (message !== undefined) return { offset: parser.offset, message };
  }
  return [...tokens, ...parser.end()];
}

function excess({
  depth,
  aliases,
  tokenCount,
}: {
  depth: number;
  aliases: number;
  tokenCount: number;
}): string | undefined {
  if (depth > YAML_DEPTH_MAX) return TOO_DEEP;
  if (aliases > YAML_ALIASES_MAX) return TOO_MANY_ALIASES;
  return tokenCount > YAML_TOKENS_MAX ? TOO_MUCH : undefined;
}

/** Aliases without an anchor before them. */
function unknownAliases(document: Document): Alias[] {
  const unknown: Alias[] = [];
  visit(document, {
    Alias(_key, alias) {
      if (!alias.resolve(document)) unknown.push(alias);
    },
  });
  return unknown;
}

/** YAML has numbers that would be stored as null: `.nan`, `.inf` and those beyond the range of a double. */
function numbersBeyondJson(document: Document): Scalar[] {
  const found: Scalar[] = [];
  visit(document, {
    Scalar(_key, scalar) {
      if (typeof scalar.value === 'number' && !Number.isFinite(scalar.value)) found.push(scalar);
    },
  });
  return found;
}

const notFinite = (number = '') => `"${number}" is not a finite number; write a finite one, or quotes if it is text`;
const unknownAnchor = (name: string) =>
  `"*${name}" has no anchor "&${name}" before it; text that starts with "*" needs quotes`;
export const ALIASES_EXPLODE = 'the aliases ("*") expand to too many values; replace them by their values';

const NEEDS_QUOTES = 'text with an expression, ": ", quotes or special characters needs quotes: "{% ... %}"';

/** For the most frequent mistakes; for others the parser's message is shown. */
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  BAD_SCALAR_START: NEEDS_QUOTES,
  BLOCK_AS_IMPLICIT_KEY: NEEDS_QUOTES,
  BLOCK_IN_FLOW: NEEDS_QUOTES,
  UNEXPECTED_TOKEN: NEEDS_QUOTES,
  BAD_INDENT: 'indent this line like its neighbours, and close every "[" and "{"',
  DUPLICATE_KEY: 'this field appears twice; remove one',
  MISSING_CHAR: 'a quote, ":" or "-" is missing, or the indentation differs from the lines around it',
  MULTIPLE_DOCS: 'a file contains one workflow; move the text after "---" to another file',
  TAB_AS_INDENT: 'indent with spaces; a tab does not count',
};

const yamlMessage = ({ code, message }: Pick<YAMLError, 'code' | 'message'>): string =>
  MESSAGES[code] ?? `invalid YAML: ${message}`;
