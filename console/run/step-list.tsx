import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { duration } from '../../bin/terminal/times.ts';
import type { RunApproval, Step } from '../data/run.ts';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { stateOf } from './step-state.ts';

interface StepListProps {
  steps: readonly Step[];
  approvals: readonly RunApproval[];
  selected: Step | undefined;
  onSelect: (index: number) => void;
}

const ROW_PX = 38;

/** Every step, in a list whose rows exist only while they are visible: a run can have 1,000. */
export function StepList({ steps, selected, onSelect }: StepListProps) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const at = selected ? steps.indexOf(selected) : -1;
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: 'auto' });
  }, [at, rows]);
  return (
    <div ref={box} className="step-list" role="listbox" aria-label={`${steps.length} steps`} tabIndex={0}>
      <div className="step-rows" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const step = steps[index];
          if (!step) return null;
          const { type, text } = stateOf(step);
          return (
            <div
              key={step.index}
              role="option"
              aria-selected={index === at}
              aria-setsize={steps.length}
              aria-posinset={index + 1}
              tabIndex={-1}
              className="step-row"
              style={{ transform: `translateY(${start}px)`, height: ROW_PX }}
              onClick={() => onSelect(step.index)}
              onKeyDown={({ key }) => key === 'Enter' && onSelect(step.index)}
            >
              <span className="step-number">{step.index + 1}</span>
              <StatusIndicator type={type}>{text}</StatusIndicator>
              <span className="step-name">
                <b>
                  <UntrustedText text={step.id} max={60} />
                </b>{' '}
                <span className="secondary">
                  <UntrustedText text={step.tool} max={60} />
                </span>
              </span>
              <span className="secondary step-time">
                {'attempt' in step && step.attempt > 1 && `attempt ${step.attempt} · `}
                {'durationMs' in step && step.durationMs !== undefined && duration(step.durationMs)}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
