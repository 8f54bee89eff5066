/** Function logs as a person reads them: time, who, what, and the details that matter. */
export function terminalLog(quiet: boolean): (source: string, line: string) => void {
  return (source, line) => {
    const text = format(source, line, quiet);
    if (text !== undefined) console.error(text);
  };
}

const LEVELS_ALWAYS_SHOWN = ['WARN', 'ERROR', 'CRITICAL'];
/** What Powertools adds to every line and nobody at a terminal needs. */
const NOISE = new Set(['level', 'message', 'timestamp', 'service', 'sampling_rate', 'xray_trace_id', '_aws']);

function format(source: string, line: string, quiet: boolean): string | undefined {
  const entry = parse(line);
  if (!entry) return quiet ? undefined : `${source.padEnd(24)} ${line}`;
  const level = String(entry.level ?? 'INFO');
  if (quiet && !LEVELS_ALWAYS_SHOWN.includes(level)) return undefined;
  const time = String(entry.timestamp ?? new Date().toISOString()).slice(11, 19);
  const details = Object.entries(entry)
    .filter(([key]) => !NOISE.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${time} ${level.padEnd(5)} ${source.padEnd(24)} ${entry.message ?? ''} ${details.join(' ')}`.trimEnd();
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
