import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { deciderPorts } from '../worker/worker-ports.ts';
import { answerApprovals } from './approvals-api.ts';
import { ApprovalsApiEnvironment } from './environment.ts';
import { cursorSecret } from './secrets-cursor-secret.ts';

const { CURSOR_SECRET_ARN } = readEnvironment(ApprovalsApiEnvironment);
const api = { ...deciderPorts(), cursorSecret: cursorSecret(CURSOR_SECRET_ARN) };

export const handler = httpHandler((event) => answerApprovals(api, event));
