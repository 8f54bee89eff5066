/** Matches exactly one expression. */
export const ONE_EXPRESSION = /^\s*\{%((?:(?!%\})[\s\S])*)%\}\s*$/;
const OPENS = '{%';
const CLOSES = '%}';

/** One expression with any value, or text that contains expressions. */
export type Template = { whole: string } | { parts: (string | { expression: string })[] };

export function readTemplate(text: string): Template {
  const whole = ONE_EXPRESSION.exec(text)?.[1];
  if (whole !== undefined) return { whole: whole.trim() };
  const parts: (string | { expression: string })[] = [];
  let from = 0;
  for (;;) {
    const opens = text.indexOf(OPENS, from);
    const closes = opens < 0 ? -1 : text.indexOf(CLOSES, opens + OPENS.length);
    if (closes < 0) return { parts: [...parts, text.slice(from)] };
    parts.push(text.slice(from, opens), { expression: text.slice(opens + OPENS.length, closes).trim() });
    from = closes + CLOSES.length;
  }
}

export function isConstant(text: string): boolean {
  const parsed = readTemplate(text);
  return 'parts' in parsed && parsed.parts.every((part) => typeof part === 'string');
}

/** A text in a template. `isName`: the name of a field, which is never evaluated. */
export interface Text {
  path: PropertyKey[];
  text: string;
  isName: boolean;
}

/** All texts of a JSON value, with their paths. */
export function textsIn(template: unknown, path: PropertyKey[] = []): Text[] {
  if (typeof template === 'string') return [{ path, text: template, isName: false }];
  if (Array.isArray(template)) return template.flatMap((item, index) => textsIn(item, [...path, index]));
  if (template === null || typeof template !== 'object') return [];
  return Object.entries(template).flatMap(([name, value]) => [
    { path: [...path, name], text: name, isName: true },
    ...textsIn(value, [...path, name]),
  ]);
}

/** All expressions of a JSON value, with their paths. */
export function expressionsIn(template: unknown): { path: PropertyKey[]; source: string }[] {
  return textsIn(template).flatMap(({ path, text, isName }) => {
    if (isName) return [];
    const parsed = readTemplate(text);
    const parts = 'whole' in parsed ? [{ expression: parsed.whole }] : parsed.parts;
    return parts.flatMap((part) => (typeof part === 'string' ? [] : [{ path, source: part.expression }]));
  });
}
