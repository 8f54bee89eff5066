import type { DigestClaim, DigestState } from '../../../lambdas/approval/digest/digest-store.ts';
import { markOf } from '../../../lambdas/connectors/connector.ts';
import { type Approval, isOpen } from '../../../lambdas/run/approval.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';

/** Without faults: the sweeps before a digest, and the five minutes between two of them. */
const LISTED_WITHIN_MS = 10 * 60_000;
/** Faults and outages last up to 40 minutes; then the sweeper sends an outbox entry every five minutes. */
const LISTED_AT_LAST_WITHIN_MS = 60 * 60_000;
const FITS_INTO_A_MESSAGE = 8;
const LIST_ENTRY = /\.list_overdue\.(.+)$/;

/** Each overdue approval is new in exactly one digest, and each digest is posted once. */
export class DigestInvariants {
  readonly #report: Report;
  readonly #situations: Situations;
  readonly #clocksAreClose: boolean;
  readonly #approval: (id: string) => Approval | undefined;
  /** Claims by the mark of their message. */
  readonly #claims = new Map<string, DigestClaim>();
  readonly #posted = new Map<string, number>();
  /** Approvals that a posted digest lists as new. */
  readonly #listed = new Set<string>();

  constructor(
    report: Report,
    known: {
      clocksAreClose: boolean;
      situations: Situations;
      approval: (id: string) => Approval | undefined;
    },
  ) {
    this.#report = report;
    this.#situations = known.situations;
    this.#clocksAreClose = known.clocksAreClose;
    this.#approval = known.approval;
  }

  saved(changes: Partial<DigestState>, state: DigestState | undefined): void {
    if (!state) {
      this.#situations.record('another invocation has changed the digests first');
      return;
    }
    const { tenant, channel, claim } = state;
    const { posted } = changes;
    if (posted) {
      const mark = markOfDigest(tenant, channel, posted.number);
      if (!this.#posted.has(mark)) this.#report('a settled digest is posted', `${posted.number} of ${channel}`);
    }
    if (!claim) return;
    const mark = markOfDigest(tenant, channel, claim.number);
    if (this.#claims.has(mark)) this.#report('the number of a digest is used once', `${claim.number} of ${channel}`);
    this.#claims.set(mark, claim);
    if (claim.added.length > 1) this.#situations.record('a digest lists several approvals');
    if (claim.added.length === 0) this.#situations.record('a digest is repeated');
  }

  sent({ by, method, url }: TargetRequest): void {
    if (by.hasReturned) this.#report('an invocation that has returned sends nothing', `${by.id} ${url.pathname}`);
    if (method === 'GET' && url.pathname.endsWith('/conversations.history')) {
      this.#situations.record('an invocation searches for the digest of another');
    }
  }

  handled({ by, url, body }: TargetRequest): void {
    if (!url.pathname.endsWith('/chat.postMessage')) return;
    const { metadata, blocks } = body as { metadata: { event_payload: { mark: string } }; blocks: unknown };
    const { mark } = metadata.event_payload;
    const claim = this.#claims.get(mark);
    if (!claim) {
      this.#report('a digest is posted by its claim', `${by.id} posted ${mark}`);
      return;
    }
    const times = (this.#posted.get(mark) ?? 0) + 1;
    this.#posted.set(mark, times);
    if (!this.#clocksAreClose) return;
    if (times > 1) this.#report('a digest is posted once', `${claim.number} was posted ${times} times`);
    const shown = JSON.stringify(blocks);
    for (const approvalId of claim.approvals) {
      if (claim.approvals.length <= FITS_INTO_A_MESSAGE && !shown.includes(approvalId))
        this.#report('a digest lists its approvals', approvalId);
      if (this.#approval(approvalId)?.escalatedAt === undefined) {
        this.#report('a digest lists only overdue approvals', approvalId);
      }
    }
    for (const approvalId of claim.added) {
      if (this.#listed.has(approvalId)) this.#report('an approval is new in one digest', approvalId);
      this.#listed.add(approvalId);
    }
  }

  completed(entryId: string): void {
    const [, approvalId = ''] = LIST_ENTRY.exec(entryId) ?? [];
    const approval = this.#approval(approvalId);
    if (!approval || !isOpen(approval) || this.#listed.has(approvalId) || !this.#clocksAreClose) return;
    this.#report('an outbox entry is completed after a digest lists its approval', approvalId);
  }

  /** No work is left: approvals that stayed open were listed. */
  checkListed(approvals: Iterable<Approval>, withFaults: boolean): void {
    const withinMs = withFaults ? LISTED_AT_LAST_WITHIN_MS : LISTED_WITHIN_MS;
    for (const { approvalId, escalatedAt, decidedAt } of approvals) {
      if (escalatedAt === undefined || decidedAt === undefined || this.#listed.has(approvalId)) continue;
      if (Date.parse(decidedAt) - Date.parse(escalatedAt) > withinMs && this.#clocksAreClose) {
        this.#report('every overdue approval is listed', approvalId);
      }
    }
  }
}

const markOfDigest = (tenant: string, channel: string, number: number) =>
  markOf(tenant, `digest ${number} of ${channel}`);
