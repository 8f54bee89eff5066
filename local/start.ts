// Functions run in threads of this process, and Lambda's clock is UTC.
process.env.TZ = 'UTC';

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startHost } from './host/host.ts';
import { terminalLog } from './host/terminal-log.ts';

const USAGE = `npm start -- [--port 4500] [--data .countersign] [--fresh] [--quiet]

  --port   where to listen for the world (default 4500)
  --data   where everything durable is kept (default .countersign)
  --fresh  start from nothing: deletes what is in the data folder
  --quiet  only warnings and errors`;

/** A child that does not end by itself must not keep Ctrl-C from working. */
const STOP_WITHIN_MS = 20_000;

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
  if (!options.quiet) {
    console.log(`the outside, simulated   ${host.url}/_sim`);
    console.log('follow runs              npx countersign runs list');
  }
  console.log(`ready ${host.url}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
