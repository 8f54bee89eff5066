import * as z from 'zod';
import { ERROR_CODES } from '../errors.ts';
import type { RecordedEvent, Replay, When } from './replay-state.ts';

/** The parts of a bundle whose fields an event can prove; see docs/evidence-format.md. */
export type ProvenEntry = 'run' | 'step' | 'receipt' | 'approval';

export type Severity = 'high' | 'medium' | 'low' | 'informational';

/**
 * Everything there is to know about one kind of event. The union of event types, the replay of a bundle, timelines, the
 * lines for a SIEM and the tables in docs/evidence-format.md are derived from it.
 */
export interface EventKind<Fields> {
  /** What has happened, as one sentence for the documentation. */
  summary: string;
  /** All fields but `type`. Metadata only: ids, statuses, hashes, times. Evidence shows a `Sentence` as its digest. */
  fields: z.ZodType<Fields>;
  /** One line of a timeline. `time` formats an ISO time. */
  text(event: Fields, time: (iso: string) => string): string;
  /** How a timeline marks the event. */
  tone?(event: Fields): 'bad' | 'waiting' | undefined;
  /** For a SIEM. By default an event with an `error` is a failure of low severity. */
  siem?(event: Fields): { severity: Severity; failed?: boolean };
  /** Applies the event to what is known of the run. Without it, the event changes no entry of a bundle. */
  replay?(replay: Replay, event: RecordedEvent, when: When): void;
  /** For the documentation: the fields that `replay` proves, by entry. *at* is the time of the commit. */
  proves?: Partial<Record<ProvenEntry, string>>;
}

/** Only for type inference. */
export const eventKind = <Fields>(kind: EventKind<Fields>): EventKind<Fields> => kind;

export const Id = z.string();
export const Hash = z.string();
export const Time = z.string();
export const Count = z.int().nonnegative();
export const Ids = z.array(Id);
export const RiskTier = z.enum(['low', 'medium', 'high']);
export const ChannelName = z.enum(['slack', 'api', 'console']);
/** A part of a write's target that derives from the output of a model. */
export const Derived = z.strictObject({ field: Id, how: z.enum(['carried', 'chosen']), from: Ids.readonly() });

/** Text of a person or of an external system. Its field must have one of the names in `SENTENCE_FIELDS`. */
export const Sentence = z.string().meta({ sentence: true });
export const RecordedErrorFields = z.strictObject({ code: z.enum(ERROR_CODES), message: Sentence });

export const ofStep = { step: Id, index: Count };
export const ofWrite = { step: Id, receiptKey: Id };
export const ofApproval = { step: Id, approvalId: Id };
