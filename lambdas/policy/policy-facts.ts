import type { TouchedState } from '../run/receipt.ts';
import type { Trigger } from '../run/run.ts';

/** Facts come from other systems. A longer one is left out, so that a policy sees either all of a value or none of it. */
const FACT_MAX_CHARACTERS = 200;
/** GitHub allows 100 labels of 50 characters. */
const LABELS_MAX = 100;
const BEFORE_VALUE_MAX_CHARACTERS = 2_000;
/** The request is stored with the step. */
const BEFORE_MAX_CHARACTERS = 16_000;

/** By `getUTCDay`. */
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const;

/** The time of a decision as policies see it, in UTC. Throws if there is none: then nothing is permitted. */
export function nowOf({ at }: { at?: string }) {
  const now = new Date(at ?? '');
  if (Number.isNaN(now.getTime())) throw new Error('the request has no time');
  const time = now.toISOString();
  return {
    time,
    date: time.slice(0, 'yyyy-mm-dd'.length),
    weekday: WEEKDAYS[now.getUTCDay()] as (typeof WEEKDAYS)[number],
    hour: now.getUTCHours(),
  };
}

/** What policies may know about the event that started the run. A fact that is not known is absent. */
export interface TriggerFacts {
  event: string;
  severity?: string;
  priority?: string;
  labels?: string[];
}

/** The current values of what a write changes, where they were read. `omitted`: names of values that are too long. */
export interface BeforeValues {
  fields: Record<string, unknown>;
  omitted: string[];
}

/** The same values as `trigger.severity` and `trigger.priority` in a workflow, and the labels of its subject. */
export function triggerFacts({ event, fields, payload }: Pick<Trigger, 'event' | 'fields' | 'payload'>): TriggerFacts {
  const severity = shortText(fields.severity);
  const priority = shortText(fields.priority);
  const labels = labelsIn(fields.labels) ?? labelsOfSubject(payload);
  return {
    event,
    ...(severity !== undefined && { severity }),
    ...(priority !== undefined && { priority }),
    ...(labels && { labels }),
  };
}

const shortText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= FACT_MAX_CHARACTERS ? value : undefined;

/** The labels of the issue, pull request or discussion of a GitHub event. */
function labelsOfSubject(payload: unknown): string[] | undefined {
  const subjects = ['issue', 'pull_request', 'discussion'].map((name) => property(payload, name));
  return labelsIn(
    property(
      subjects.find((subject) => typeof subject === 'object' && subject !== null),
      'labels',
    ),
  );
}

/** All labels or none: a part of them could hide the one that a policy asks for. */
function labelsIn(list: unknown): string[] | undefined {
  if (!Array.isArray(list) || list.length > LABELS_MAX) return undefined;
  const names = list.map((label) => shortText(typeof label === 'string' ? label : property(label, 'name')));
  return names.every((name) => name !== undefined) ? [...new Set(names)] : undefined;
}

const property = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

export function beforeValues(state: TouchedState): BeforeValues {
  const fields: Record<string, unknown> = {};
  const omitted: string[] = [];
  let characters = 0;
  for (const [name, value] of Object.entries(state)) {
    const size = JSON.stringify(value ?? null).length;
    characters += name.length + size;
    const fits = size <= BEFORE_VALUE_MAX_CHARACTERS && characters <= BEFORE_MAX_CHARACTERS;
    if (fits) fields[name] = value ?? null;
    else omitted.push(name);
  }
  return { fields, omitted };
}
