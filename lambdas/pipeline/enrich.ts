import { CountersignError } from '../run/errors.ts';
import type { Enrichment, Trigger } from '../run/run.ts';

const TITLE_MAX_CHARACTERS = 300;

/** Deterministic: uses no model and no network. A run needs a title, so that people recognize it. */
export function enrich(trigger: Trigger): Enrichment {
  const { title, actor, severity, url } = trigger.fields;
  if (typeof title !== 'string' || title.trim() === '') {
    throw new CountersignError(
      'ENRICHMENT_FAILED',
      `enrichment: the ${trigger.source} event ${trigger.event} has no title`,
    );
  }
  return {
    title: title.trim().slice(0, TITLE_MAX_CHARACTERS).toWellFormed(),
    ...(typeof actor === 'string' && actor.trim() !== '' && { actor: actor.trim() }),
    ...(typeof severity === 'string' && { severity }),
    links: typeof url === 'string' ? [url] : [],
  };
}
