import { type Alias, Composer, type CST, type Document, Lexer, LineCounter, Parser, visit } from 'yaml';
import { noAnchor, yamlMistake } from './yaml-mistakes.ts';

/** No file that people write comes near these: reading takes time and stack by what is in it, not only by its bytes. */
export const YAML_DEPTH_MAX = 40;
export const YAML_ALIASES_MAX = 100;
/** Names, values, and what stands between them. */
const YAML_SIGNS_MAX = 60_000;

/** A mistake in a file, at its line. */
export interface Mistake {
  line: number;
  message: string;
}

export type ReadYaml = { document: Document; lineAt: (offset: number) => number } | { mistakes: Mistake[] };

/** Reads one YAML document, but not what nests too deep, repeats too much or has too many parts. */
export function readYaml(text: string): ReadYaml {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const tokens = tokensOf(text, lines);
  if ('message' in tokens) return { mistakes: [{ line: lineAt(tokens.offset), message: tokens.message }] };
  const composed = new Composer({ logLevel: 'error', prettyErrors: false }).compose(tokens, true, text.length);
  const [document, ...others] = [...composed];
  if (!document) return { mistakes: [{ line: 1, message: 'the file is empty' }] };
  const mistakes = [
    ...document.errors.map((error) => ({ line: lineAt(error.pos[0]), message: yamlMistake(error) })),
    ...strayAliases(document).map(({ source, range }) => ({
      line: lineAt(range?.[0] ?? 0),
      message: noAnchor(source),
    })),
    ...others.slice(0, 1).map(({ range }) => ({
      line: lineAt(range[0]),
      message: yamlMistake({ code: 'MULTIPLE_DOCS', message: '' }),
    })),
  ];
  return mistakes.length > 0 ? { mistakes: firstOfEachLine(mistakes) } : { document, lineAt };
}

/** What follows a mistake on the same line mostly follows from it. */
function firstOfEachLine(mistakes: Mistake[]): Mistake[] {
  const first = new Map<number, Mistake>();
  for (const mistake of mistakes) if (!first.has(mistake.line)) first.set(mistake.line, mistake);
  return [...first.values()];
}

interface Excess {
  offset: number;
  message: string;
}

const TOO_DEEP = `values nest deeper than ${YAML_DEPTH_MAX}; make it flatter`;
const TOO_MUCH = 'it has too many values to be read at once; split it into several';
const TOO_MANY_ALIASES = `it has more than ${YAML_ALIASES_MAX} aliases ("*"); write out what they stand for`;

/** Goes through a file sign by sign, and no further than the first thing that is too much. */
function tokensOf(text: string, lines: LineCounter): CST.Token[] | Excess {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let aliases = 0;
  let signs = 0;
  for (const sign of new Lexer().lex(text)) {
    signs += 1;
    if (sign.startsWith('*')) aliases += 1;
    tokens.push(...parser.next(sign));
    const message = excess({ depth: parser.stack.length, aliases, signs });
    if (message !== undefined) return { offset: parser.offset, message };
  }
  return [...tokens, ...parser.end()];
}

function excess({ depth, aliases, signs }: { depth: number; aliases: number; signs: number }): string | undefined {
  if (depth > YAML_DEPTH_MAX) return TOO_DEEP;
  if (aliases > YAML_ALIASES_MAX) return TOO_MANY_ALIASES;
  return signs > YAML_SIGNS_MAX ? TOO_MUCH : undefined;
}

/** Where something is repeated that has no name before. */
function strayAliases(document: Document): Alias[] {
  const stray: Alias[] = [];
  visit(document, {
    Alias(_key, alias) {
      if (!alias.resolve(document)) stray.push(alias);
    },
  });
  return stray;
}
