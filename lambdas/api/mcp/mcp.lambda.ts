import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemIds, systemPause } from '../../entry/system.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { McpEnvironment } from '../environment.ts';
import { handleMcp } from './mcp.ts';

const environment = readEnvironment(McpEnvironment);
const changer = wireRunChanger(environment);
const ports = {
  ...changer,
  definitions: changer.stored,
  ids: systemIds,
  pause: systemPause,
  sessionSecret: stageSecret(environment.SESSION_SECRET_ARN),
  issuers: environment.ISSUERS,
  version: environment.VERSION,
  consoleUrl: environment.CONSOLE_URL,
};

export const handler = httpHandler((event) => handleMcp(ports, event));
