import type { Redact } from './output.ts';
import { Redactor } from './redact.ts';

/** No token is longer. What could begin a longer one is stored, as the redactor shows it. */
const HELD_MAX_CHARACTERS = 8 * 1024;

const END_CHARACTERS = 200;

/**
 * Hides tokens of known shapes in output that arrives. The agent has hidden the values that it knows; this is for an agent
 * that failed to. Each request has its own redactor, so a stream is cut where no token has begun: what follows is held
 * back for the next request.
 */
export const redactArrived: Redact = (held, data, isLast) => {
  const text = held + data;
  const redactor = new Redactor();
  if (isLast) return { text: redactor.push(text) + redactor.end(), held: '' };
  let at = 0;
  let shown = '';
  let safe = { at, shown };
  // By lines, and the end by characters: it may continue in the next request.
  const end = Math.max(0, text.length - END_CHARACTERS);
  for (const part of [...text.slice(0, end).split(/(?<=\n)/), ...text.slice(end)]) {
    at += part.length;
    shown += redactor.push(part);
    if (redactor.isIdle) safe = { at, shown };
  }
  if (text.length - safe.at > HELD_MAX_CHARACTERS) return { text: shown + redactor.end(), held: '' };
  return { text: safe.shown, held: text.slice(safe.at) };
};
