import Button from '@cloudscape-design/components/button';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { call, problemText } from '../data/api.ts';
import type { Step } from '../data/run.ts';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { OutputLines } from './output-lines.ts';

const POLL_MS = 1_000;
const LINE_PX = 19;
const LINE_MAX_CHARACTERS = 2_000;

/** What the command of an agent prints, live: follow, search, wrap, download. Only visible lines exist on the page. */
export default function Output({ runId, step }: { runId: string; step: Step }) {
  const { output, version, isComplete, problem } = useOutput(runId, step.index);
  const [isFollowing, setIsFollowing] = useState(true);
  const [isWrapped, setIsWrapped] = useState(false);
  const [search, setSearch] = useState('');
  const wanted = useDeferredValue(search);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version changes with the lines
  const matches = useMemo(() => output.matches(wanted), [output, wanted, version]);
  const [match, setMatch] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: output.lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the end
  useEffect(() => {
    if (isFollowing && output.lines.length > 0) rows.scrollToIndex(output.lines.length - 1, { align: 'end' });
  }, [version, isFollowing]);
  const goTo = (next: number) => {
    if (matches.length === 0) return;
    const at = (next + matches.length) % matches.length;
    setIsFollowing(false);
    setMatch(at);
    rows.scrollToIndex(matches[at] ?? 0, { align: 'center' });
  };
  const download = () => {
    const url = URL.createObjectURL(new Blob([output.text()], { type: 'text/plain' }));
    const link = Object.assign(document.createElement('a'), {
      href: url,
      download: `${runId}-step-${step.index + 1}.txt`,
    });
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <section className="output" aria-label="Output of the command">
      <div className="buttons">
        <input
          className="plain-input output-search"
          type="search"
          value={search}
          placeholder="Search the output"
          aria-label="Search the output"
          onChange={({ target }) => setSearch(target.value)}
          onKeyDown={({ key, shiftKey }) => key === 'Enter' && goTo(match + (shiftKey ? -1 : 1))}
        />
        <span className="secondary" role="status">
          {search !== '' && `${matches.length === 0 ? 0 : match + 1} of ${matches.length}`}
        </span>
        <label>
          <input type="checkbox" checked={isFollowing} onChange={({ target }) => setIsFollowing(target.checked)} />{' '}
          Follow
        </label>
        <label>
          <input type="checkbox" checked={isWrapped} onChange={({ target }) => setIsWrapped(target.checked)} /> Wrap
          lines
        </label>
        <Button
          onClick={() => {
            setIsFollowing(false);
            rows.scrollToIndex(0);
          }}
        >
          Go to the start
        </Button>
        <Button onClick={download} disabled={output.bytes === 0} disabledReason="There is no output yet">
          Download
        </Button>
      </div>
      {problem !== undefined && <UntrustedText text={problem} />}
      <div
        ref={box}
        className={isWrapped ? 'output-box wrapped' : 'output-box'}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: people scroll it with the keyboard
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Output"
        onWheel={({ deltaY }) => deltaY < 0 && setIsFollowing(false)}
      >
        <div className="output-lines" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => (
            <div
              key={index}
              ref={isWrapped ? rows.measureElement : undefined}
              data-index={index}
              className={matches[match] === index ? 'output-line found' : 'output-line'}
              style={{ transform: `translateY(${start}px)` }}
            >
              <UntrustedText text={output.lines[index] || ' '} max={LINE_MAX_CHARACTERS} lines="many" />
            </div>
          ))}
        </div>
      </div>
      <p className="secondary">
        {output.lines.length.toLocaleString('en-US')} lines, {output.bytes.toLocaleString('en-US')} characters
        {isComplete ? '. The command has ended.' : ', live.'}
      </p>
    </section>
  );
}

/** Reads the output from its beginning, then what is new, until the command has ended. */
function useOutput(runId: string, index: number) {
  const [state, setState] = useState({
    output: new OutputLines(),
    version: 0,
    isComplete: false,
    problem: undefined as string | undefined,
  });
  useEffect(() => {
    const output = new OutputLines();
    let isStopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let since = 0;
    let version = 0;
    const read = async (): Promise<void> => {
      try {
        const part = await call('GET /api/v1/runs/{id}/steps/{index}/output', {
          params: { id: runId, index: String(index) },
          query: { since },
        });
        if (isStopped) return;
        for (const { data } of part.chunks) output.append(data);
        since = part.next;
        version += 1;
        setState({ output, version, isComplete: part.complete, problem: undefined });
        if (!part.complete) timer = setTimeout(read, part.more ? 0 : POLL_MS);
      } catch (error) {
        if (isStopped) return;
        setState({ output, version, isComplete: false, problem: problemText(error) });
        timer = setTimeout(read, POLL_MS);
      }
    };
    read();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }, [runId, index]);
  return state;
}
