import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { decide } from '../approval/decide.ts';
import { SecretsConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemPause } from '../entry/system.ts';
import { deciderPorts } from '../worker/worker-ports.ts';
import { InteractivityEnvironment } from './environment.ts';
import type { Interactivity } from './interactivity.ts';
import { doorPorts } from './slack-ports.ts';

/** Beside knowing who speaks, what it takes to decide and to open modals. */
export function interactivityPorts(): Interactivity {
  const environment = readEnvironment(InteractivityEnvironment);
  const decider = deciderPorts();
  return {
    ...doorPorts(decider.stored, environment.WEBHOOK_SECRET_ARNS),
    runs: decider.runs,
    definitions: decider.definitions,
    connections: new SecretsConnections(
      new SecretsManagerClient(),
      decider.stored,
      environment.CONNECTION_SECRET_ARNS,
      systemClock.now,
    ),
    decide: (deciding) => decide(decider, deciding),
    sleep: systemPause.sleep,
  };
}
