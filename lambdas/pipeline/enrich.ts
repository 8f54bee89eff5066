import { CountersignError } from '../run/errors.ts';
import type { Enrichment, Trigger } from '../run/run.ts';

const TITLE_MAX_CHARACTERS = 300;

/** Deterministic, local, no model, no network. A trigger without a title is not worth a run: nobody could tell what it was. */
export function enrich(trigger: Trigger): Enrichment {
  const { title, actor, severity, url } = trigger.fields;
  if (typeof title !== 'string' || title.trim() === '') {
    throw new CountersignError(
      'ENRICHMENT_FAILED',
      `enrichment: the ${trigger.source} event ${trigger.event} has no title to show`,
    );
  }
  return {
    title: title.trim().slice(0, TITLE_MAX_CHARACTERS).toWellFormed(),
    ...(typeof actor === 'string' && actor.trim() !== '' && { actor: actor.trim() }),
    ...(typeof severity === 'string' && { severity }),
    links: typeof url === 'string' ? [url] : [],
  };
}
