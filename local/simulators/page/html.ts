/** HTML that needs no escaping. Only `html` and `mrkdwn` create it. */
export class SafeHtml {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = SafeHtml | string | number | false | null | undefined | readonly Piece[];

/** A template that escapes its values unless they are `SafeHtml`. It omits false, null and undefined. */
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
