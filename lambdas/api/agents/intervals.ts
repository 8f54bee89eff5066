import { SYNC_INTERVAL_MS, SYNC_WHILE_RUNNING_MS, SYNC_WITHOUT_SOCKET_MS } from '../../agents/agent-terms.ts';

/** How often agents sync. They follow what the last response says, so a stage can change it without new agents. */
export const INTERVALS = {
  sync_ms: SYNC_INTERVAL_MS,
  sync_while_running_ms: SYNC_WHILE_RUNNING_MS,
  sync_without_socket_ms: SYNC_WITHOUT_SOCKET_MS,
};
