import * as z from 'zod';
import { type HttpEvent, type HttpResponse, json } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { mayOrRefuse } from '../authorizer/caller.ts';
import { PAGE_MAX } from '../paging/paging.ts';
import { parseBody } from '../request.ts';

const Redrive = z.strictObject({ dryRun: z.boolean().default(false) });

/**
 * Sends stuck outbox entries of the caller's tenant again, a page of them at a time: what is sent again is no longer
 * stuck, so asking again gives the next. The next sweep sends them, within a minute.
 */
export async function redriveOutbox(
  mover: Pick<RunChanger, 'runs' | 'clock'>,
  caller: Caller,
  event: HttpEvent,
): Promise<HttpResponse> {
  mayOrRefuse(caller, 'control', 'send outbox entries again');
  const { runs, clock } = mover;
  const { dryRun } = parseBody(Redrive, event);
  const found = await runs.stuckOutbox(caller.tenant, PAGE_MAX + 1);
  const page = found.slice(0, PAGE_MAX);
  if (!dryRun) {
    const now = isoNow(clock);
    await Promise.all(page.map((entry) => runs.redriveOutbox(entry, now)));
  }
  return json(dryRun ? 200 : 202, { entries: page.map(entryView), more: found.length > page.length });
}

const entryView = ({ id, kind, runId, attempts, createdAt, failed }: OutboxEntry) => ({
  id,
  kind: kind ?? null,
  runId: runId ?? null,
  attempts: attempts ?? 0,
  createdAt: createdAt ?? null,
  failed: failed ?? null,
});
