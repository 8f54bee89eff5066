import { systemConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { systemIds, systemLog } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { DynamoNoticeStore } from '../notify/dynamo-notice-store.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { InteractivityEnvironment } from './environment.ts';
import { handleEvent } from './handle-event.ts';
import { SlackNotices } from './notice/slack-notices.ts';
import { wireSlackRequests } from './slack.wiring.ts';

const environment = readEnvironment(InteractivityEnvironment);
const changer = wireRunChanger(environment);
const connections = systemConnections(changer.stored, secretNames(environment, 'messaging'));
const { definitions } = changer;
const events = {
  ...changer,
  ...wireSlackRequests(changer.stored, environment),
  ids: systemIds,
  notices: new DynamoNoticeStore(changer.dynamo, environment.RUN_TABLE),
  messages: new SlackNotices({ connections, definitions, log: systemLog, consoleUrl: undefined }),
};

export const handler = httpHandler((event, context) =>
  handleEvent({ ...events, timeLeftMs: () => context.getRemainingTimeInMillis() }, event),
);
