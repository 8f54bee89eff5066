import type { Block } from './workspace.ts';

/** `<…>` or one of the simple styles. Nested styles are not supported. */
const MARKUP = /<([^<>\n]+)>|\*([^*\n]+)\*|_([^_\n]+)_|~([^~\n]+)~|`([^`\n]+)`|:([a-z0-9_+-]+):/g;
const STYLES = ['bold', 'italic', 'strike', 'code'];

type Element = Record<string, unknown>;

/** The text as Slack stores it: references stay, and every other `&`, `<` and `>` becomes an entity. */
export const storedText = (text: string): string =>
  text.replace(/&(?!(?:amp|lt|gt);)/g, '&amp;').replace(/<([^<>\n]+)>|<|>/g, (sign, inside?: string) => {
    if (inside !== undefined && isReference(inside)) return sign;
    return sign.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  });

const isReference = (inside: string): boolean => /^(@[UW]|#C|!|https?:|mailto:)/.test(inside);

/** Slack adds a block of rich text to every message without blocks, and its clients show this block. */
export function richTextOf(text: string): Block {
  const elements: Element[] = [];
  const addText = (part: string) => {
    if (part !== '') elements.push({ type: 'text', text: unescaped(part) });
  };
  let from = 0;
  for (const match of text.matchAll(MARKUP)) {
    const [whole, reference, ...rest] = match;
    addText(text.slice(from, match.index));
    const emoji = rest[4];
    if (reference !== undefined) elements.push(referenced(reference));
    else if (emoji !== undefined) elements.push({ type: 'emoji', name: emoji });
    else {
      const styled = rest.findIndex((each) => each !== undefined);
      elements.push({ type: 'text', text: unescaped(rest[styled] ?? ''), style: { [String(STYLES[styled])]: true } });
    }
    from = match.index + whole.length;
  }
  addText(text.slice(from));
  return { type: 'rich_text', block_id: 'rich-1', elements: [{ type: 'rich_text_section', elements }] };
}

function referenced(reference: string): Element {
  const [target = '', label] = reference.split('|');
  if (target.startsWith('@')) return { type: 'user', user_id: target.slice(1) };
  if (target.startsWith('#')) return { type: 'channel', channel_id: target.slice(1) };
  if (target.startsWith('!subteam^')) return { type: 'usergroup', usergroup_id: target.slice('!subteam^'.length) };
  if (target.startsWith('!')) return { type: 'broadcast', range: target.slice(1) };
  return { type: 'link', url: target, ...(label !== undefined && { text: unescaped(label) }) };
}

const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
