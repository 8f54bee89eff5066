import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemIds } from '../../entry/system.ts';
import { wireHints } from '../../live/hints.wiring.ts';
import { DynamoNoticeStore } from '../../notify/dynamo-notice-store.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { ClosedSessions } from '../../run-changes/session/closed-sessions.ts';
import { ControlEnvironment } from '../environment.ts';
import { handleControl } from './control.ts';

const environment = readEnvironment(ControlEnvironment);
const changer = wireRunChanger(environment);
const ports = {
  ...changer,
  ids: systemIds,
  hints: wireHints(environment, changer.dynamo),
  closedSessions: new ClosedSessions(),
  sessionSecret: stageSecret(environment.SESSION_SECRET_ARN),
  notices: new DynamoNoticeStore(changer.dynamo, environment.RUN_TABLE),
};

export const handler = httpHandler((event) => handleControl(ports, event));
