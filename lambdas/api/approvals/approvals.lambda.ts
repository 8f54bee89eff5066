import { wireDecider } from '../../approval/decider.wiring.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { ApprovalsApiEnvironment } from '../environment.ts';
import { handleApprovals } from './approvals.ts';

const { CURSOR_SECRET_ARN } = readEnvironment(ApprovalsApiEnvironment);
const api = { ...wireDecider(), cursorSecret: stageSecret(CURSOR_SECRET_ARN) };

export const handler = httpHandler((event) => handleApprovals(api, event));
