import { AcceptedList, acceptedListKey } from '../../../lambdas/evidence/accepted-runs/accepted-list.ts';
import { writeAcceptedLists } from '../../../lambdas/evidence/accepted-runs/write-accepted-list.ts';
import { CLOSING_MARGIN_MS } from '../../../lambdas/evidence/daily-log/close-days.ts';
import { MemoryAcceptedRuns } from '../../fakes/memory/memory-accepted-runs.ts';
import { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import type { Simulation } from '../simulation.ts';

const HOUR_MS = 60 * 60_000;
/** Many hours pass in simulations whose approvals expire. After some, the lists cover more time. */
const LISTS_MAX = 6;
const SIGNER = new SeededSigner();
const quiet = () => {};

/** The lists that the hourly function writes name every accepted run once, and no run stays open. */
export async function checkAcceptedRuns(simulation: Simulation): Promise<void> {
  const { store, time } = simulation;
  const runs = [...store.inside.runs()];
  const firstMs = Math.min(...runs.map(({ createdAt }) => Date.parse(createdAt)));
  const lastMs = Math.max(time.now(), ...runs.map(({ createdAt }) => Date.parse(createdAt))) + HOUR_MS;
  const stepMs = Math.max(HOUR_MS, (lastMs - firstMs) / LISTS_MAX);
  for (const tenant of new Set(runs.map((run) => run.tenant))) {
    const objects = new MemoryEvidenceStore();
    const rows = new MemoryAcceptedRuns(store);
    const listed = new Map<string, number>();
    let open: string[] = [];
    for (let atMs = firstMs; atMs < lastMs + stepMs; atMs += stepMs) {
      const clock = { now: () => atMs + CLOSING_MARGIN_MS };
      const log = { info: quiet, warn: quiet, error: quiet };
      for (const until of await writeAcceptedLists({ rows, store: objects, signer: SIGNER, clock, log }, tenant)) {
        const list = AcceptedList.parse(JSON.parse(String(objects.peek(acceptedListKey(tenant, until)))));
        for (const { runId } of list.accepted) listed.set(runId, (listed.get(runId) ?? 0) + 1);
        open = list.open.map(({ runId }) => runId);
      }
    }
    for (const { runId } of runs.filter((run) => run.tenant === tenant)) {
      const times = listed.get(runId) ?? 0;
      if (times !== 1) simulation.violate('every accepted run is listed once', `${runId}: ${times} times`);
    }
    for (const runId of open) simulation.violate('no sealed run is listed as open', runId);
  }
}
