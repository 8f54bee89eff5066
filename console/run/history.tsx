import Button from '@cloudscape-design/components/button';
import { useState } from 'react';
import { dateAndTime } from '../../bin/terminal/times.ts';
import { describeEvent } from '../../lambdas/run/events/events.ts';
import { useLive } from '../data/live.ts';
import type { RunDetail } from '../data/run.ts';
import { Copyable } from '../parts/copyable.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

const PAGE_SIZE = 100;

/** The commits of the run, with everything that people did. */
export default function History({ run }: { run: RunDetail }) {
  const [since, setSince] = useState(0);
  // The first page is part of the run.
  const { data, error } = useLive(
    'GET /api/v1/runs/{id}/events',
    { params: { id: run.runId }, query: { since, limit: PAGE_SIZE } },
    { topic: { run: run.runId }, enabled: since > 0 },
  );
  const commits = since === 0 ? run.commits : (data?.commits ?? []);
  const last = commits.at(-1)?.seq ?? 0;
  return (
    <div className="page">
      {error && <Problem error={error} />}
      <ol className="history">
        {commits.map(({ seq, at, events, hash }) => (
          <li key={seq}>
            <span className="secondary">
              {seq} · <PointInTime at={at} />
            </span>
            <ul className="plain-list">
              {events.map((event, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: commits never change
                <li key={index}>
                  <UntrustedText text={describeEvent(event, dateAndTime)} max={400} />
                </li>
              ))}
            </ul>
            <details className="folded">
              <summary>Hash</summary>
              <Copyable text={hash} label={`the hash of commit ${seq}`} />
            </details>
          </li>
        ))}
      </ol>
      <div className="pager">
        <Button disabled={since === 0} onClick={() => setSince(Math.max(0, since - PAGE_SIZE))}>
          Earlier commits
        </Button>
        <Button disabled={last >= run.head.seq} onClick={() => setSince(last)}>
          Later commits
        </Button>
      </div>
    </div>
  );
}
