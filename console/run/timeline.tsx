import Button from '@cloudscape-design/components/button';
import { useRef, useState } from 'react';
import { duration } from '../../bin/terminal/times.ts';
import type { Step, WholeRun } from '../data/run.ts';
import { useNow } from '../parts/point-in-time.tsx';
import { safeText } from '../parts/untrusted-text.tsx';
import { type Span, spansOf } from './step-state.ts';

interface TimelineProps {
  whole: WholeRun;
  selected: Step | undefined;
  onSelect: (index: number) => void;
}

const ROW_PX = 24;
const LABEL_PX = 130;
const WIDTH_PX = 680;
/** Beside the last bar. */
const END_PX = 10;
const SPAN_MIN_PX = 2;
const KINDS: Record<Span['kind'], string> = {
  working: 'Working',
  people: 'Waiting for people',
  external: 'Waiting for a signal or a time',
  failed: 'Failed',
};

/** More bars at once would make every second slow. */
const ROWS_MAX = 100;
const pageOf = (row: number): number => Math.max(0, row - (row % ROWS_MAX));

/** When each step worked and when it waited, and for whom. */
export function Timeline({ whole: { run, steps, approvals }, selected, onSelect }: TimelineProps) {
  const now = useNow();
  const endMs = run.completedAt === null ? now : Date.parse(run.completedAt);
  const startMs = Date.parse(run.createdAt);
  const totalMs = Math.max(endMs - startMs, 1);
  const reached = steps.filter(({ status }) => status !== 'pending');
  const all = reached.map((step) => ({ step, spans: spansOf(step, approvals, endMs) }));
  const [from, setFrom] = useState(() => pageOf(selected ? reached.indexOf(selected) : 0));
  const rows = all.slice(from, from + ROWS_MAX);
  const sum = (kind: Span['kind']) =>
    all
      .flatMap(({ spans }) => spans)
      .reduce((all, span) => all + (span.kind === kind ? span.toMs - span.fromMs : 0), 0);
  const box = useRef<SVGSVGElement>(null);
  const x = (ms: number) => LABEL_PX + ((ms - startMs) / totalMs) * (WIDTH_PX - LABEL_PX - END_PX);
  const height = rows.length * ROW_PX + ROW_PX;
  return (
    <div className="timeline">
      <p className="legend">
        {(Object.keys(KINDS) as Span['kind'][]).map((kind) => (
          <span key={kind}>
            <i className={`swatch ${kind}`} /> {KINDS[kind]} {sum(kind) > 0 && <b>{duration(sum(kind))}</b>}
          </span>
        ))}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: people scroll it with the keyboard */}
      <section className="timeline-box" tabIndex={0} aria-label="Timeline">
        <svg
          ref={box}
          viewBox={`0 0 ${WIDTH_PX} ${height}`}
          role="img"
          aria-label={`Timeline of ${reached.length} steps over ${duration(totalMs)}; waited ${duration(sum('people'))} for people`}
        >
          <title>Timeline</title>
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <g key={part}>
              <line
                x1={x(startMs + part * totalMs)}
                x2={x(startMs + part * totalMs)}
                y1={ROW_PX}
                y2={height}
                className="grid"
              />
              <text
                x={x(startMs + part * totalMs)}
                y={14}
                textAnchor={part === 1 ? 'end' : part === 0 ? 'start' : 'middle'}
              >
                {part === 0 ? '0' : duration(Math.round(part * totalMs))}
              </text>
            </g>
          ))}
          {rows.map(({ step, spans }, row) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the list of steps offers the same with the keyboard
            <g
              key={step.index}
              className={step === selected ? 'bar selected' : 'bar'}
              onClick={() => onSelect(step.index)}
            >
              <rect x={0} y={(row + 1) * ROW_PX} width={WIDTH_PX} height={ROW_PX} className="hit" />
              <text x={4} y={(row + 1) * ROW_PX + 16}>
                {safeText(step.id, 20)}
              </text>
              {spans.map(({ kind, fromMs, toMs }) => (
                <rect
                  key={`${kind}${fromMs}`}
                  x={x(fromMs)}
                  y={(row + 1) * ROW_PX + 5}
                  width={Math.max(x(toMs) - x(fromMs), SPAN_MIN_PX)}
                  height={ROW_PX - 10}
                  rx={3}
                  className={kind}
                >
                  <title>{`${safeText(step.id, 60)}: ${KINDS[kind].toLowerCase()}, ${duration(Math.round(toMs - fromMs))}`}</title>
                </rect>
              ))}
            </g>
          ))}
        </svg>
      </section>
      {all.length > ROWS_MAX && (
        <div className="pager">
          <Button disabled={from === 0} onClick={() => setFrom(from - ROWS_MAX)}>
            Earlier steps
          </Button>
          <Button disabled={from + ROWS_MAX >= all.length} onClick={() => setFrom(from + ROWS_MAX)}>
            Later steps
          </Button>
          <span>
            Steps {from + 1} to {from + rows.length} of {all.length}
          </span>
        </div>
      )}
    </div>
  );
}
