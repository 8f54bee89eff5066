/** Exactly one expression: no second one hides in it. */
export const ONE_EXPRESSION = /^\s*\{%((?:(?!%\})[\s\S])*)%\}\s*$/;
const OPENS = '{%';
const CLOSES = '%}';

/** A text of a template: one expression, which may give anything, or words with expressions between them. */
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

/** Whether a text holds no expression. */
export function isConstant(text: string): boolean {
  const written = readTemplate(text);
  return 'parts' in written && written.parts.every((part) => typeof part === 'string');
}

/** A text somewhere in a template; `isName`: it names a value, and is never evaluated. */
export interface Text {
  path: PropertyKey[];
  text: string;
  isName: boolean;
}

/** Every text in a JSON value and where it stands, for checks before anything runs. */
export function textsIn(template: unknown, path: PropertyKey[] = []): Text[] {
  if (typeof template === 'string') return [{ path, text: template, isName: false }];
  if (Array.isArray(template)) return template.flatMap((item, index) => textsIn(item, [...path, index]));
  if (template === null || typeof template !== 'object') return [];
  return Object.entries(template).flatMap(([name, value]) => [
    { path: [...path, name], text: name, isName: true },
    ...textsIn(value, [...path, name]),
  ]);
}

/** Every expression in a JSON value and where it stands. */
export function expressionsIn(template: unknown): { path: PropertyKey[]; source: string }[] {
  return textsIn(template).flatMap(({ path, text, isName }) => {
    if (isName) return [];
    const written = readTemplate(text);
    const parts = 'whole' in written ? [{ expression: written.whole }] : written.parts;
    return parts.flatMap((part) => (typeof part === 'string' ? [] : [{ path, source: part.expression }]));
  });
}
