/** Text that may go into a page as it is. Only this file makes it, so everything else is escaped by construction. */
export class SafeHtml {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = SafeHtml | string | number | false | null | undefined | readonly Piece[];

/** A template whose values are escaped unless they are HTML made by it; false and undefined vanish. */
export function html(strings: TemplateStringsArray, ...values: Piece[]): SafeHtml {
  const rest = values.map((value, index) => render(value) + (strings[index + 1] ?? ''));
  return new SafeHtml((strings[0] ?? '') + rest.join(''));
}

function render(value: Piece): string {
  if (value instanceof SafeHtml) return value.text;
  if (value === false || value === null || value === undefined) return '';
  return typeof value === 'object' ? value.map(render).join('') : escapeHtml(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
