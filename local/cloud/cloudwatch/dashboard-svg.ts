import type { ShownAlarm } from './cloudwatch.ts';
import { type Line, linesOf, SHOWN_MS } from './dashboard-lines.ts';
import { type MetricStore, MINUTE_MS } from './metric-store.ts';

interface Widget {
  type: 'metric' | 'text' | 'alarm';
  x: number;
  y: number;
  width: number;
  height: number;
  properties: { title?: string; markdown?: string; metrics?: (string | object)[][]; alarms?: string[] };
}

interface Shown {
  /** `DashboardBody` of the template. */
  body: string;
  metrics: MetricStore;
  alarms: readonly ShownAlarm[];
  nowMs: number;
}

const CELL = { width: 60, height: 36 };
const MARGIN = 6;
const COLORS = ['#0972d3', '#d13212', '#1d8102', '#8900e1', '#e07941', '#096f64', '#c33d69', '#6b5ce7'];
const LEGEND_MAX = 6;

/** The dashboard of the template as an image, from the metrics of this host. */
export function dashboardSvg({ body, metrics, alarms, nowMs }: Shown): string {
  const { widgets } = JSON.parse(body) as { widgets: Widget[] };
  // The last minutes are complete only after their end.
  const toMs = Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS;
  const drawn = widgets.map((widget) => {
    const frame = {
      left: widget.x * CELL.width + MARGIN,
      top: widget.y * CELL.height + MARGIN,
      width: widget.width * CELL.width - 2 * MARGIN,
      height: widget.height * CELL.height - 2 * MARGIN,
    };
    if (widget.type === 'text') return heading(widget.properties.markdown ?? '', frame);
    if (widget.type === 'alarm') return alarmList(alarms, frame);
    const lines = linesOf((widget.properties.metrics ?? []) as never, metrics, toMs - SHOWN_MS, toMs);
    return graph(widget.properties.title ?? '', lines, frame);
  });
  const width = 24 * CELL.width;
  const height = Math.max(...widgets.map(({ y, height }) => y + height)) * CELL.height;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>${drawn.join('')}</svg>`;
}

interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

const text = (x: number, y: number, content: string, attributes = '') =>
  `<text x="${x}" y="${y}" ${attributes}>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`;

const heading = (markdown: string, { left, top, height }: Frame) =>
  text(left, top + height / 2 + 6, markdown.replace(/^#+ /, ''), 'font-size="18" font-weight="bold"');

const box = ({ left, top, width, height }: Frame) =>
  `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="none" stroke="#ccc"/>`;

function alarmList(alarms: readonly ShownAlarm[], frame: Frame): string {
  const perColumn = Math.floor((frame.height - 30) / 15);
  const items = alarms.map(({ logicalId, state }, index) => {
    const x = frame.left + 14 + Math.floor(index / perColumn) * 236;
    const y = frame.top + 40 + (index % perColumn) * 15;
    const color = state === 'ALARM' ? '#d13212' : '#1d8102';
    const name = logicalId.replace(/^Alarms/, '').replace(/[0-9A-F]{8}$/, '');
    return `<circle cx="${x - 6}" cy="${y - 4}" r="4" fill="${color}"/>${text(x + 4, y, name)}`;
  });
  const count = alarms.filter(({ state }) => state === 'ALARM').length;
  const title = `Alarms: ${count} of ${alarms.length}`;
  return box(frame) + text(frame.left + 8, frame.top + 18, title, 'font-weight="bold"') + items.join('');
}

function graph(title: string, lines: readonly Line[], frame: Frame): string {
  const head = box(frame) + text(frame.left + 8, frame.top + 18, title, 'font-weight="bold"');
  const withValues = lines.filter(({ values }) => values.some((value) => value !== undefined));
  if (withValues.length === 0) {
    return head + text(frame.left + frame.width / 2, frame.top + frame.height / 2, 'no data', 'fill="#888"');
  }
  const legendHeight = 16 * Math.ceil(Math.min(withValues.length, LEGEND_MAX) / 3);
  const plot = {
    left: frame.left + 52,
    top: frame.top + 28,
    width: frame.width - 62,
    height: frame.height - 44 - legendHeight,
  };
  const highest = Math.max(...withValues.flatMap(({ values }) => values.map((value) => value ?? 0))) || 1;
  const axis = [0, highest].map((value, index) => {
    const y = plot.top + plot.height * (1 - index);
    const line = `<line x1="${plot.left}" x2="${plot.left + plot.width}" y1="${y}" y2="${y}" stroke="#ddd"/>`;
    return line + text(plot.left - 6, y + 4, shortNumber(value), 'text-anchor="end" fill="#555"');
  });
  const drawn = withValues.map((line, index) => polyline(line, COLORS[index % COLORS.length] ?? '', plot, highest));
  return head + axis.join('') + drawn.join('') + legend(withValues, frame, legendHeight);
}

function polyline({ label, values }: Line, color: string, plot: Frame, highest: number): string {
  const points = values.flatMap((value, index) => {
    if (value === undefined) return [];
    const x = plot.left + (plot.width * (index + 0.5)) / values.length;
    const y = plot.top + plot.height * (1 - value / highest);
    return [{ x: Math.round(x), y: Math.round(y) }];
  });
  const dots = points.map(({ x, y }) => `<circle cx="${x}" cy="${y}" r="3" fill="${color}"/>`);
  const path = points.map(({ x, y }) => `${x},${y}`).join(' ');
  const named = `data-line="${label.replaceAll('"', '&quot;')}"`;
  return `<g ${named}><polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}</g>`;
}

function legend(lines: readonly Line[], frame: Frame, height: number): string {
  const shown = lines.slice(0, LEGEND_MAX);
  return shown
    .map(({ label }, index) => {
      const x = frame.left + 12 + ((index % 3) * frame.width) / 3;
      const y = frame.top + frame.height - height + 10 + Math.floor(index / 3) * 16;
      const isLast = index === LEGEND_MAX - 1 && lines.length > LEGEND_MAX;
      const color = COLORS[index % COLORS.length];
      const short = label.length > 24 ? `${label.slice(0, 23)}…` : label;
      const name = isLast ? `and ${lines.length - LEGEND_MAX + 1} more` : short;
      return `<rect x="${x}" y="${y - 8}" width="8" height="8" fill="${color}"/>${text(x + 12, y, name)}`;
    })
    .join('');
}

const shortNumber = (value: number): string =>
  value >= 1000 ? `${Math.round(value / 100) / 10}k` : String(Math.round(value * 1000) / 1000);
