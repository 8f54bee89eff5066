import { wireDecider } from '../../approval/decider.wiring.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { ApprovalsApiEnvironment } from '../environment.ts';
import { cursorSecret } from '../paging/secrets-cursor-secret.ts';
import { handleApprovals } from './approvals.ts';

const { CURSOR_SECRET_ARN } = readEnvironment(ApprovalsApiEnvironment);
const api = { ...wireDecider(), cursorSecret: cursorSecret(CURSOR_SECRET_ARN) };

export const handler = httpHandler((event) => handleApprovals(api, event));
