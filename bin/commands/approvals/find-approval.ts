import { isOpen } from '../../../lambdas/run/approval.ts';
import type { Api, ShownApproval } from '../../client/api-client.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';
import { findRunId, shortRunIds } from '../runs/find-run.ts';

const APPROVAL_ID = /^run_[0-9a-f]{32}\.\d+-\d+$/;
/** A prefix of a run id, and optionally the number of the approval. */
const REFERENCE = /^(?:run_)?([0-9a-f]{1,32})(?:\.(\d+-\d+))?$/;
const PENDING_MAX = 100;

/** Accepts an approval id, or a run id if that run has one open approval. */
export async function findApproval(api: Api, reference: string): Promise<ShownApproval> {
  if (APPROVAL_ID.test(reference)) return api.call('GET /api/v1/approvals/{id}', { params: { id: reference } });
  const [, digits, which] = REFERENCE.exec(reference) ?? [];
  if (digits === undefined) {
    throw new UsageError(
      `"${reference}" is not an approval id; an id looks like run_3f9c2a1b.2-1, see npx countersign approvals list`,
    );
  }
  const { approvals } = await api.call('GET /api/v1/approvals', { query: { limit: PENDING_MAX } });
  const waiting = approvals.filter(({ approvalId }) => matches(approvalId, digits, which));
  const { approvalId } = theOnly(waiting) ?? (await ofRun(api, digits, which));
  // Lists do not say what is needed to decide.
  return api.call('GET /api/v1/approvals/{id}', { params: { id: approvalId } });
}

async function ofRun(api: Api, digits: string, which: string | undefined): Promise<ShownApproval> {
  const runId = await findRunId(api, digits);
  const { approvals } = await api.call('GET /api/v1/runs/{id}', { params: { id: runId } });
  const named = approvals.filter(({ approvalId }) => matches(approvalId, digits, which));
  const found = theOnly(named.filter(isOpen)) ?? theOnly(named);
  if (found) return found;
  throw new Failure(EXIT.failed, `${runId} has no ${which ? `approval ${which}` : 'approvals'}`);
}

function theOnly(approvals: ShownApproval[]): ShownApproval | undefined {
  const [only, ...others] = approvals;
  if (others.length === 0) return only;
  const ids = approvals.map(({ approvalId }) => approvalId).join(', ');
  throw new Failure(EXIT.usage, `${approvals.length} approvals match: ${ids}; give one of these ids`);
}

function matches(approvalId: string, digits: string, which: string | undefined): boolean {
  return approvalId.startsWith(`run_${digits}`) && (which === undefined || approvalId.endsWith(`.${which}`));
}

/** The shortest ids that are unique among these approvals. */
export function shortApprovalIds(approvals: readonly Pick<ShownApproval, 'runId'>[]) {
  const short = shortRunIds(approvals.map(({ runId }) => runId));
  return ({ runId, approvalId }: Pick<ShownApproval, 'runId' | 'approvalId'>) =>
    short(runId) + approvalId.slice(runId.length);
}
