import * as z from 'zod';
import { systemClock } from '../entry/system.ts';
import { LogTelemetry, type Telemetry } from './telemetry.ts';

/** Lambda sets it from the log level in the template. */
const Level = z.enum(['DEBUG', 'INFO', 'WARN', 'ERROR']).catch('INFO');

/** Writes to stdout directly: Lambda wraps lines of the console, and CloudWatch would not find the metrics. */
export const wireTelemetry = ({
  STAGE,
  STAGE_KIND,
}: {
  STAGE: string;
  STAGE_KIND: 'prod' | 'staging' | 'dev';
}): Telemetry =>
  new LogTelemetry({
    stage: STAGE,
    environment: STAGE_KIND,
    level: Level.parse(process.env.AWS_LAMBDA_LOG_LEVEL),
    clock: systemClock,
    write: (line) => process.stdout.write(line),
  });
