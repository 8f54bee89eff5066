import { parseArgs } from 'node:util';
import { didYouMean } from '../lambdas/entry/did-you-mean.ts';

const OPTIONS = {
  json: { type: 'boolean', default: false, description: 'print JSON' },
  runs: { type: 'string', default: '2000', description: 'runs to measure, several at a time (default 2000)' },
  sequential: { type: 'string', default: '200', description: 'runs to measure, one at a time (default 200)' },
  concurrency: { type: 'string', default: '32', description: 'how many of --runs are started at a time (default 32)' },
  listed: {
    type: 'string',
    default: '100000',
    description: 'runs in the table when lists are measured (default 100000)',
  },
  agents: { type: 'boolean', default: false, description: 'only the figures of agents' },
  sessions: { type: 'boolean', default: false, description: 'only the figures of sessions' },
  bill: { type: 'boolean', default: false, description: 'only the cost of a million runs' },
  stage: { type: 'string', description: 'with --bill: the stage of cdk.json whose bill without traffic is printed' },
  console: { type: 'boolean', default: false, description: 'only the live feed and the console' },
  throughput: { type: 'boolean', default: false, description: 'only runs per second, latency and CPU time' },
  growth: {
    type: 'boolean',
    default: false,
    description: 'only the cost of a run with many runs, and with many tenants',
  },
  'cold-start': { type: 'boolean', default: false, description: "only the imports of the functions' bundles" },
  socket: { type: 'boolean', default: true, description: '--no-socket: agents have no socket, so they only poll' },
  help: { type: 'boolean', default: false, description: 'show this help' },
} as const;

const NAMES = Object.keys(OPTIONS);

/** The options of `npm run bench`, or what to print instead of measuring. */
export function benchOptions(args: string[]) {
  try {
    const { values } = parseArgs({ args, options: OPTIONS, allowNegative: true });
    return values.help ? { print: usage(), exitCode: 0 } : { values };
  } catch (error) {
    const { message } = error as Error;
    const unknown = /^Unknown option '--([^']*)'/.exec(message)?.[1];
    const known = NAMES.map((name) => `--${name}`).join(', ');
    const problem =
      unknown === undefined
        ? message
        : `unknown option --${unknown}${didYouMean(unknown, NAMES, (name) => `--${name}`) || `; known: ${known}`}`;
    return { print: `${usage()}\n\n${problem}`, exitCode: 2 };
  }
}

function usage(): string {
  const rows = Object.entries(OPTIONS).map(([name, { type, description }]) => {
    const shown = `--${name}${type === 'string' ? (name === 'stage' ? ' NAME' : ' N') : ''}`;
    return `  ${shown.padEnd(15)}  ${description}`;
  });
  return ['npm run bench -- [options]', '', 'Measures runs on the local host.', '', ...rows].join('\n');
}
