import Button from '@cloudscape-design/components/button';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useRef, useState } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { TextField } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { outcomeText } from './outcome-text.ts';
import type { Files } from './try-policies.tsx';

type ReplayPage = ResponseFrom<'POST /api/v1/policies/replay'>;
type Flip = ReplayPage['flips'][number];

interface Replayed {
  runs: number;
  examined: number;
  flips: readonly Flip[];
  isComplete: boolean;
}

const NOTHING: Replayed = { runs: 0, examined: 0, flips: [], isComplete: false };
const SHOWN_MAX = 50;

/** Which recorded decisions the policies of the editor would change: those that loosen first. */
export function Replay({ files, isChanged }: { files: Files; isChanged: boolean }) {
  const [since, setSince] = useState('');
  const [replayed, setReplayed] = useState<Replayed>();
  const isStopped = useRef(false);
  const [isRunning, setIsRunning] = useState(false);
  const replay = async () => {
    isStopped.current = false;
    setIsRunning(true);
    let all = NOTHING;
    let cursor: string | null = null;
    try {
      do {
        const page: ReplayPage = await call('POST /api/v1/policies/replay', {
          body: {
            policies: { engine: 'cedar', files: { ...files } },
            ...(since !== '' && { since: new Date(since).toISOString() }),
            ...(cursor !== null && { cursor }),
          },
        });
        cursor = page.nextCursor;
        all = {
          runs: all.runs + page.runs,
          examined: all.examined + page.examined,
          flips: [...all.flips, ...page.flips].sort((a, b) => Number(b.loosens) - Number(a.loosens)),
          isComplete: cursor === null,
        };
        setReplayed(all);
      } while (cursor !== null && !isStopped.current);
    } finally {
      setIsRunning(false);
    }
    return undefined;
  };
  return (
    <>
      <SubmitForm
        label="Replay"
        button="Replay recorded decisions"
        right="policies:replay"
        command={`countersign policy replay --policies FOLDER${since === '' ? '' : ` --since ${since}`}`}
        run={replay}
        beside={
          isRunning && (
            <Button
              onClick={() => {
                isStopped.current = true;
              }}
            >
              Stop
            </Button>
          )
        }
      >
        <p className="secondary">
          Evaluates the recorded requests of past runs with the policies above
          {isChanged ? '' : ', which are those in force'}. Nothing changes.
        </p>
        <TextField label="Only runs since" type="date" optional value={since} onChange={setSince} />
      </SubmitForm>
      {replayed && <Flips replayed={replayed} />}
    </>
  );
}

function Flips({ replayed: { runs, examined, flips, isComplete } }: { replayed: Replayed }) {
  const [from, setFrom] = useState(0);
  const loosened = flips.filter(({ loosens }) => loosens).length;
  const shown = flips.slice(from, from + SHOWN_MAX);
  return (
    <>
      <p role="status">
        {examined} decisions of {runs} runs{isComplete ? '' : ' so far'}:{' '}
        {flips.length === 0 ? 'none would change.' : `${flips.length} would change, ${loosened} of them loosen.`}
      </p>
      {flips.length > 0 && (
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">Effect</th>
              <th scope="col">Write</th>
              <th scope="col">Recorded</th>
              <th scope="col">Would be</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ runId, step, tool, target, from: before, to, loosens, reasons }) => (
              <tr key={`${runId} ${step}`}>
                <td>
                  <StatusIndicator type={loosens ? 'warning' : 'info'}>
                    {loosens ? 'Loosens' : 'Tightens'}
                  </StatusIndicator>
                </td>
                <td>
                  <Link href={`/runs/${encodeURIComponent(runId)}`}>
                    <UntrustedText text={step} />
                  </Link>
                  : <UntrustedText text={tool} /> at <UntrustedText text={target} max={120} />
                </td>
                <td>
                  <UntrustedText text={outcomeText(before)} />
                </td>
                <td>
                  <UntrustedText text={outcomeText(to)} />
                  {reasons.length > 0 && (
                    <span className="secondary">
                      {' '}
                      <UntrustedText text={reasons.join('; ')} max={400} />
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {flips.length > SHOWN_MAX && (
        <div className="pager">
          <Button disabled={from === 0} onClick={() => setFrom(from - SHOWN_MAX)}>
            Previous page
          </Button>
          <Button disabled={from + SHOWN_MAX >= flips.length} onClick={() => setFrom(from + SHOWN_MAX)}>
            Next page
          </Button>
        </div>
      )}
    </>
  );
}
