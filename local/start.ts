// Functions run in threads of this process, and Lambda's clock is UTC.
process.env.TZ = 'UTC';

import { enableCompileCache } from 'node:module';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

// Halves the time that loading the host takes. Without write access, Node skips the cache.
enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'countersign'));

const USAGE = `npm start -- [--port 4500] [--data .countersign] [--fresh] [--quiet]

  --port   the port to listen on (default 4500)
  --data   the folder for all data (default .countersign)
  --fresh  deletes the data folder first
  --quiet  shows only warnings and errors`;

/** Ctrl-C ends the host after this time, also if a child process does not stop. */
const STOP_WITHIN_MS = 20_000;

const LEVELS_ALWAYS_SHOWN = ['WARN', 'ERROR', 'CRITICAL'];
/** Fields of every line that are not shown as details. */
const NOISE = new Set(['level', 'message', 'timestamp', 'service', 'sampling_rate', 'xray_trace_id', '_aws']);

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: 'string', default: '4500' },
        data: { type: 'string', default: '.countersign' },
        fresh: { type: 'boolean', default: false },
        quiet: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535)
      throw new Error(`--port ${values.port} is not a port number`);
    return { ...values, port };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const options = readOptions();
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}

try {
  const { startHost } = await import('./host/host.ts');
  const host = await startHost({
    port: options.port,
    dataFolder: resolve(options.data),
    fresh: options.fresh,
    log: terminalLog(options.quiet),
  });
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
      host.stop().then(() => process.exit(0));
    });
  }
  await writeProfile(host.url);
  if (!options.quiet) {
    console.log(`The console: ${host.url}`);
    console.log(`Slack, GitHub, ServiceNow, PagerDuty and an AI agent are simulated at ${host.url}/_sim`);
    const profile = options.port === 4500 ? '' : ` --profile local-${options.port}`;
    console.log(`To list runs: npx countersign runs list${profile}`);
  }
  console.log(`ready ${host.url}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

/** `countersign --profile local-4620` reaches this host. A sign-in at this URL stays, and the default profile too. */
async function writeProfile(url: string): Promise<void> {
  try {
    const { profileNameFor, Profiles } = await import('../bin/profiles/profiles.ts');
    const profiles = new Profiles(process.env);
    if (!profiles.at(url))
      profiles.save(profileNameFor(url), { url, apiKey: 'local-owner-key' }, { makeCurrent: false });
  } catch (error) {
    console.error(`no profile for the command line: ${(error as Error).message}`);
  }
}

/** Prints log lines for people: time, level, source, message and details. */
function terminalLog(quiet: boolean): (source: string, line: string) => void {
  return (source, line) => {
    const text = format(source, line, quiet);
    if (text !== undefined) console.error(text);
  };
}

function format(source: string, line: string, quiet: boolean): string | undefined {
  const entry = parse(line);
  if (!entry) return quiet ? undefined : `${source.padEnd(24)} ${line}`;
  const level = String(entry.level ?? 'INFO');
  if (quiet && !LEVELS_ALWAYS_SHOWN.includes(level)) return undefined;
  const time = String(entry.timestamp ?? new Date().toISOString()).slice(11, 19);
  const details = Object.entries(entry)
    .filter(([key]) => !NOISE.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${time} ${level.padEnd(5)} ${source.padEnd(24)} ${entry.message ?? ('_aws' in entry ? 'metrics' : '')} ${details.join(' ')}`.trimEnd();
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
