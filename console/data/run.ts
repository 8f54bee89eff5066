import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ResponseFrom } from '../../client/api-client.ts';
import { hasEnded } from '../parts/run-status.tsx';
import { call } from './api.ts';
import { useLive } from './live.ts';

export type RunDetail = ResponseFrom<'GET /api/v1/runs/{id}'>;
export type Step = RunDetail['steps'][number];
export type Receipt = RunDetail['receipts'][number];
export type RunApproval = RunDetail['approvals'][number];

export interface WholeRun {
  run: RunDetail;
  /** All steps with their receipts and approvals: the pages after the first follow. */
  steps: readonly Step[];
  receipts: readonly Receipt[];
  approvals: readonly RunApproval[];
  isComplete: boolean;
}

const PAGE_SIZE = 100;

/** A run with all its steps, live. Pages after the first are read again only when the run has another commit. */
export function useRun(id: string) {
  const { data: run, error, refetch } = useLive('GET /api/v1/runs/{id}', { params: { id } }, { topic: { run: id } });
  const cursor = run?.nextStepsCursor ?? null;
  const { data: rest } = useQuery({
    queryKey: ['steps', id, run?.head.seq],
    queryFn: () => furtherSteps(id, cursor),
    enabled: cursor !== null,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!run) return { error, refetch };
  const whole: WholeRun = {
    run,
    steps: [...run.steps, ...(cursor === null ? [] : (rest?.steps ?? []))],
    receipts: [...run.receipts, ...(cursor === null ? [] : (rest?.receipts ?? []))],
    approvals: [...run.approvals, ...(cursor === null ? [] : (rest?.approvals ?? []))],
    isComplete: cursor === null || rest !== undefined,
  };
  return { whole, error, refetch, isEnded: hasEnded(run.status) };
}

type StepsPage = Pick<ResponseFrom<'GET /api/v1/runs/{id}/steps'>, 'steps' | 'receipts' | 'approvals'>;

async function furtherSteps(id: string, from: string | null): Promise<StepsPage> {
  const all: StepsPage = { steps: [], receipts: [], approvals: [] };
  for (let cursor = from; cursor !== null; ) {
    const page = await call('GET /api/v1/runs/{id}/steps', { params: { id }, query: { cursor, limit: PAGE_SIZE } });
    all.steps.push(...page.steps);
    all.receipts.push(...page.receipts);
    all.approvals.push(...page.approvals);
    cursor = page.nextCursor;
  }
  return all;
}

/** The step that made the run fail or stop; undefined if nothing is wrong. */
export function causeOf({ run, steps }: WholeRun): Step | undefined {
  const failed = steps.find(({ status }) => status === 'failed_terminal');
  if (failed) return failed;
  return run.status === 'failed_retryable' ? steps.find(({ status }) => status === 'failed_retryable') : undefined;
}
