import { decide } from '../approval/decide.ts';
import { wireDecider } from '../approval/decider.wiring.ts';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { InteractivityEnvironment } from './environment.ts';
import type { Interactivity } from './handle-interaction.ts';
import { wireSlackRequests } from './slack.wiring.ts';

export function wireInteractivity(): Interactivity {
  const environment = readEnvironment(InteractivityEnvironment);
  const decider = wireDecider();
  return {
    ...wireSlackRequests(decider.stored, environment),
    runs: decider.runs,
    definitions: decider.definitions,
    connections: systemConnections(decider.stored, secretNames(environment, 'messaging')),
    decide: (deciding) => decide(decider, deciding),
    sleep: systemPause.sleep,
  };
}
