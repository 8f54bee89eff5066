import { escapeHtml, SafeHtml } from '../page/html.ts';
import { USERS } from './workspace.ts';

const EMOJI: Readonly<Record<string, string>> = {
  white_check_mark: '✅',
  x: '❌',
  no_entry: '⛔',
  warning: '⚠️',
  rotating_light: '🚨',
  hourglass_flowing_sand: '⏳',
  eyes: '👀',
  lock: '🔒',
  memo: '📝',
  leftwards_arrow_with_hook: '↩️',
  robot_face: '🤖',
  information_source: 'ℹ️',
};

/** Private-use characters around the number of a finished piece. They are first removed from the message. */
const OPEN = '\uE000';
const CLOSE = '\uE001';
const PIECE = new RegExp(`${OPEN}(\\d+)${CLOSE}`, 'g');

/** Code and `<…>` are extracted first, because their content is not formatted. */
const VERBATIM = /```(.+?)```|`([^`\n]+)`|<([^<>\n]+)>/gs;

/**
 * Slack's mrkdwn as HTML: bold, italic, strike, code, quotes, links and mentions. The text is escaped before tags are added,
 * and only http, https and mailto become links.
 */
export function mrkdwn(text: string): SafeHtml {
  const pieces: string[] = [];
  const extract = (piece: string): string => `${OPEN}${pieces.push(piece) - 1}${CLOSE}`;
  const plain = text
    .replaceAll(OPEN, '')
    .replaceAll(CLOSE, '')
    .replace(VERBATIM, (_match, block?: string, code?: string, reference?: string) => {
      if (block !== undefined) return extract(`<pre>${escapeText(block.trim())}</pre>`);
      if (code !== undefined) return extract(`<code>${escapeText(code)}</code>`);
      return extract(referenceHtml(reference ?? ''));
    });
  const formatted = plain.split('\n').map(lineHtml).join('<br>');
  return new SafeHtml(formatted.replace(PIECE, (_match, index) => pieces[Number(index)] ?? ''));
}

function lineHtml(line: string): string {
  const quoted = /^(?:>|&gt;) ?(.*)$/.exec(line);
  const formatted = escapeText(quoted?.[1] ?? line)
    .replace(/(?<![\w*])\*(\S|\S[^*]*\S)\*(?![\w*])/g, '<strong>$1</strong>')
    .replace(/(?<![\w_])_(\S|\S[^_]*\S)_(?![\w_])/g, '<em>$1</em>')
    .replace(/(?<![\w~])~(\S|\S[^~]*\S)~(?![\w~])/g, '<s>$1</s>')
    .replace(/:([a-z0-9_]+):/g, (match, name: string) => EMOJI[name] ?? match);
  return quoted ? `<span class="quote">${formatted}</span>` : formatted;
}

/** Senders escape `&`, `<` and `>` of plain text. They must not be escaped twice. */
function escapeText(text: string): string {
  return escapeHtml(text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'));
}

function referenceHtml(reference: string): string {
  const bar = reference.indexOf('|');
  const target = bar < 0 ? reference : reference.slice(0, bar);
  const label = bar < 0 ? '' : reference.slice(bar + 1);
  if (target.startsWith('@')) {
    const user = USERS.find(({ id }) => id === target.slice(1));
    return `<span class="mention">@${escapeText(user?.name ?? (label || target.slice(1)))}</span>`;
  }
  if (target.startsWith('#')) return `<span class="mention">#${escapeText(label || target.slice(1))}</span>`;
  if (target.startsWith('!')) return `<span class="mention">${escapeText(label || `@${target.slice(1)}`)}</span>`;
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return escapeText(`<${reference}>`);
  return `<a href="${escapeText(target)}" target="_blank" rel="noreferrer">${escapeText(label || target)}</a>`;
}
