import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { collectorHeaders } from './collector-headers.ts';
import { RunTraces } from './export-traces.ts';
import { otlpCollector } from './otlp-collector.ts';
import { wireTelemetry } from './telemetry.wiring.ts';

interface TracesEnvironment {
  STAGE: string;
  STAGE_KIND: 'prod' | 'staging' | 'dev';
  TRACES_URL: string;
  TRACES_SECRET_ARN?: string | undefined;
}

/** Imported statically: it is 26 KB without a library (2 ms), and a dynamic import makes esbuild wrap all it shares (10 ms). */
export function wireTraces(environment: TracesEnvironment): RunTraces {
  const { STAGE: stage, TRACES_URL: url, TRACES_SECRET_ARN: secretArn } = environment;
  const aws = readEnvironment(AwsEnvironment);
  const headers = secretArn === undefined ? undefined : collectorHeaders(aws, secretArn, systemClock);
  return new RunTraces({
    collector: otlpCollector({ url, stage, aws, ...(headers && { headers }) }),
    clock: systemClock,
    sleep: systemPause.sleep,
    metrics: wireTelemetry(environment),
    log: systemLog,
  });
}
