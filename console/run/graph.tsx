import { Graph as DagreGraph, layout } from '@dagrejs/dagre';
import { useMemo } from 'react';
import { useApi } from '../data/api.ts';
import type { Step, WholeRun } from '../data/run.ts';
import { Problem } from '../parts/problem.tsx';
import { safeText } from '../parts/untrusted-text.tsx';
import { stateOf } from './step-state.ts';

interface GraphProps {
  whole: WholeRun;
  selected: Step | undefined;
  onSelect: (index: number) => void;
}

const NODE = { width: 190, height: 46 };
/** Larger graphs are unreadable; the list shows them. */
const NODES_MAX = 300;

/** Which step needs which, drawn from top to bottom: pages scroll that way, also on narrow screens. */
export default function StepGraph({ whole: { run, steps }, selected, onSelect }: GraphProps) {
  const { name, version } = run.workflow;
  const { data, error } = useApi('GET /api/v1/workflows/{name}/versions/{version}', {
    params: { name, version: String(version) },
  });
  const needs = useMemo(() => {
    const defined = data?.definition.steps ?? [];
    return new Map(
      defined.map((step, index) => [
        step.id,
        step.needs ?? defined.slice(Math.max(index - 1, 0), index).map(({ id }) => id),
      ]),
    );
  }, [data]);
  const ids = steps.map(({ id }) => id).join('\n');
  const placed = useMemo(() => placeSteps(ids.split('\n'), needs), [ids, needs]);
  if (error) return <Problem error={error} />;
  if (steps.length > NODES_MAX)
    return <p>This run has {steps.length} steps, too many for a drawing. The list shows them.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: people scroll it with the keyboard
    <section className="graph-box" tabIndex={0} aria-label="Graph">
      <svg
        width={placed.width}
        height={placed.height}
        role="img"
        aria-label={`Graph of ${steps.length} steps. The list of steps contains the same.`}
      >
        <title>Graph of the steps</title>
        {placed.edges.map(({ key, points }) => (
          <polyline key={key} points={points} className="edge" />
        ))}
        {steps.map((step) => {
          const at = placed.nodes.get(step.id);
          if (!at) return null;
          const { type, text } = stateOf(step);
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the list of steps offers the same with the keyboard
            <g
              key={step.index}
              className={`node ${type}${step === selected ? ' selected' : ''}`}
              transform={`translate(${at.x - NODE.width / 2} ${at.y - NODE.height / 2})`}
              onClick={() => onSelect(step.index)}
            >
              <rect width={NODE.width} height={NODE.height} rx={8} />
              <text x={10} y={19} className="node-name">
                {safeText(step.id, 24)}
              </text>
              <text x={10} y={36}>
                {text}
              </text>
            </g>
          );
        })}
      </svg>
    </section>
  );
}

function placeSteps(ids: readonly string[], needs: ReadonlyMap<string, readonly string[]>) {
  const graph = new DagreGraph();
  graph.setGraph({ rankdir: 'TB', nodesep: 18, ranksep: 28, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...NODE });
  for (const id of ids) for (const need of needs.get(id) ?? []) if (ids.includes(need)) graph.setEdge(need, id);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: new Map(ids.map((id) => [id, graph.node(id) as { x: number; y: number }])),
    edges: graph.edges().map((edge) => ({
      key: `${edge.v} ${edge.w}`,
      points: ((graph.edge(edge) as { points?: { x: number; y: number }[] }).points ?? [])
        .map(({ x, y }) => `${x},${y}`)
        .join(' '),
    })),
  };
}
