import { lazy, Suspense } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { useFlag } from '../data/flags.ts';
import { causeOf, useRun, type WholeRun } from '../data/run.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { RunStatusText } from '../parts/run-status.tsx';
import { Subject } from '../parts/subject.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useKeys } from '../shell/keyboard.ts';
import { Cause } from './cause.tsx';
import { RunActions } from './run-actions.tsx';
import { StepDetail } from './step-detail.tsx';
import { StepList } from './step-list.tsx';
import { Timeline } from './timeline.tsx';

const Graph = lazy(() => import('./graph.tsx'));
const History = lazy(() => import('./history.tsx'));

const VIEWS = {
  steps: 'Steps',
  timeline: 'Timeline',
  graph: 'Graph',
  history: 'History',
  facts: 'Trigger and evidence',
};
type View = keyof typeof VIEWS;

/** An address may name a view that does not exist. */
const viewOf = (name: string | null): View => (name !== null && Object.hasOwn(VIEWS, name) ? (name as View) : 'steps');

/** The task workspace: on the left what happened and happens, on the right what can be done. */
export default function RunPage({ id }: { id: string }) {
  const { whole, error, refetch } = useRun(id);
  if (error && !whole) {
    return (
      <Page title="Run">
        <Problem error={error} retry={() => refetch()} />
      </Page>
    );
  }
  if (!whole) return <p className="starting">Loading …</p>;
  return <Workspace whole={whole} onChanged={() => refetch()} />;
}

function Workspace({ whole, onChanged }: { whole: WholeRun; onChanged: () => void }) {
  const { run, steps } = whole;
  // Off: one pane, with what can be done above what happened.
  const isWorkspace = useFlag('ui.task_workspace.enabled');
  const query = new URLSearchParams(useSearch());
  const [path, go] = useLocation();
  const view = viewOf(query.get('view'));
  const cause = causeOf(whole);
  const wanted = query.get('step');
  const current = steps.find(({ id }) => id === run.currentStep);
  const selected =
    steps.find(({ index }) => String(index) === wanted) ?? cause ?? current ?? steps.findLast(isReached) ?? steps[0];
  const linkTo = (next: Record<string, string>) => {
    const changed = new URLSearchParams(query);
    for (const [name, value] of Object.entries(next)) changed.set(name, value);
    return `${path}?${changed}`;
  };
  const select = (index: number) => go(linkTo({ step: String(index) }), { replace: true });
  const at = selected ? steps.indexOf(selected) : -1;
  useKeys({
    j: () => select(steps[Math.min(at + 1, steps.length - 1)]?.index ?? 0),
    k: () => select(steps[Math.max(at - 1, 0)]?.index ?? 0),
  });
  const title = run.title ?? run.subject ?? run.automation;
  return (
    <Page title={title} heading={<UntrustedText text={title} max={160} />} description={<RunFacts whole={whole} />}>
      <div className={isWorkspace ? 'workspace' : 'page'}>
        {!isWorkspace && <RunActions whole={whole} onChanged={onChanged} />}
        <div className="page">
          {cause && <Cause whole={whole} step={cause} />}
          <nav className="views" aria-label="Views of the run">
            {Object.entries(VIEWS).map(([name, label]) => (
              <Link key={name} href={linkTo({ view: name })} replace {...(name === view && { 'aria-current': 'page' })}>
                {label}
              </Link>
            ))}
          </nav>
          <Suspense fallback={<p className="starting">Loading …</p>}>
            {view === 'steps' && (
              <StepList steps={steps} approvals={whole.approvals} selected={selected} onSelect={select} />
            )}
            {!whole.isComplete && <p className="secondary">Reading the steps after the first {steps.length} …</p>}
            {view === 'timeline' && <Timeline whole={whole} selected={selected} onSelect={select} />}
            {view === 'graph' && <Graph whole={whole} selected={selected} onSelect={select} />}
            {view === 'history' && <History run={run} />}
            {view === 'facts' && <TriggerAndEvidence whole={whole} />}
          </Suspense>
          {selected && view !== 'history' && view !== 'facts' && <StepDetail whole={whole} step={selected} />}
        </div>
        {isWorkspace && <RunActions whole={whole} onChanged={onChanged} />}
      </div>
    </Page>
  );
}

const isReached = ({ status }: WholeRun['steps'][number]): boolean => status !== 'pending';

function RunFacts({ whole: { run } }: { whole: WholeRun }) {
  return (
    <span className="facts">
      <RunStatusText status={run.status} />
      {run.error && <strong className="overdue">{run.error.code}</strong>}
      {run.subject !== null && <Subject subject={run.subject} />}
      <span>
        <UntrustedText text={run.automation} max={60} />, workflow <UntrustedText text={run.workflow.name} max={60} /> v
        {run.workflow.version}
      </span>
      <span>
        accepted <PointInTime at={run.createdAt} />
      </span>
      {run.completedAt !== null && (
        <span>
          ended <PointInTime at={run.completedAt} />
        </span>
      )}
      {run.assignee !== null && (
        <span>
          assigned to <UntrustedText text={run.assignee} max={60} />
        </span>
      )}
      {run.request?.action?.of && (
        <span>
          proposed by <Link href={`/runs/${encodeURIComponent(run.request.action.of.runId)}`}>a session</Link>
        </span>
      )}
      {run.rolledBackBy != null && (
        <span>
          undone by <Link href={`/runs/${encodeURIComponent(run.rolledBackBy)}`}>another run</Link>
        </span>
      )}
      {run.rollbackOf != null && (
        <span>
          undoes the writes of <Link href={`/runs/${encodeURIComponent(run.rollbackOf)}`}>another run</Link>
        </span>
      )}
      {run.stopRequest && (
        <strong>
          {run.stopRequest.kind} requested by <UntrustedText text={run.stopRequest.actor} max={60} />
        </strong>
      )}
    </span>
  );
}

function TriggerAndEvidence({ whole: { run } }: { whole: WholeRun }) {
  return (
    <dl className="id-list">
      <dt>Run</dt>
      <dd>
        <Copyable text={run.runId} label="the run" />
      </dd>
      <dt>Trigger</dt>
      <dd>
        {run.trigger.source} <UntrustedText text={run.trigger.event} />{' '}
        <Copyable text={run.trigger.key} label="the key" />
      </dd>
      {run.request && (
        <>
          <dt>Requested by</dt>
          <dd>
            <UntrustedText text={run.request.actor} />
          </dd>
        </>
      )}
      {run.enrichment?.actor !== undefined && (
        <>
          <dt>Reported by</dt>
          <dd>
            <UntrustedText text={run.enrichment.actor} />
          </dd>
        </>
      )}
      {(run.enrichment?.links ?? []).map((link) => (
        <SafeLink key={link} link={link} />
      ))}
      {run.inputs !== null && (
        <>
          <dt>Inputs</dt>
          <dd>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long value scrolls, also with the keyboard */}
            <pre className="value" tabIndex={0}>
              <UntrustedText text={JSON.stringify(run.inputs, null, 2)} lines="many" max={4_000} />
            </pre>
          </dd>
        </>
      )}
      {run.flags !== null && (
        <>
          <dt>Flags at its start</dt>
          <dd>
            {Object.entries(run.flags)
              .map(([flag, on]) => `${flag}: ${on ? 'on' : 'off'}`)
              .join(', ')}
          </dd>
        </>
      )}
      <dt>Chain</dt>
      <dd>
        {run.head.seq} commits, head <Copyable text={run.head.hash} label="the head" />
      </dd>
      <dt>Trace</dt>
      <dd>
        <Copyable text={run.trace.id} label="the trace" />{' '}
        {run.trace.url !== null && (
          <a href={run.trace.url} target="_blank" rel="noreferrer noopener">
            Show the trace
          </a>
        )}
      </dd>
      <dt>Evidence</dt>
      <dd>
        {run.evidence === null ? (
          'Sealed after the run has ended.'
        ) : (
          <>
            Sealed <PointInTime at={run.evidence.sealedAt} />. Bundle{' '}
            <Copyable text={run.evidence.sha256} label="the hash" />{' '}
            <Copyable text={`npx countersign evidence get ${run.runId} --out run.json`} label="the command" />
            {(run.evidence.artifacts ?? []).map(({ name, key, sha256 }) => (
              <div key={name}>
                {`${name}: ${key} `}
                <Copyable text={sha256} label={`the hash of ${name}`} />
              </div>
            ))}
          </>
        )}
      </dd>
      {[
        ['Undoes', run.rollbackOf],
        ['Undone by', run.rolledBackBy],
        ...run.reruns.map(({ kind, runId }) => [kind === 'rerun' ? 'Repeated by' : 'Replayed by', runId]),
      ].map(
        ([label, runId]) =>
          runId != null && (
            <div key={`${label}${runId}`} className="contents">
              <dt>{label}</dt>
              <dd>
                <Link href={`/runs/${encodeURIComponent(runId)}`}>{runId}</Link>
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** Links come from webhooks: only web addresses, and the person sees where they lead. */
function SafeLink({ link }: { link: string }) {
  const isWeb = /^https?:\/\//i.test(link);
  return (
    <>
      <dt>Link</dt>
      <dd>
        {isWeb ? (
          <a href={link} target="_blank" rel="noreferrer noopener">
            <UntrustedText text={link} max={200} />
          </a>
        ) : (
          <UntrustedText text={link} max={200} />
        )}
      </dd>
    </>
  );
}
