import { CountersignError } from '../../run/errors.ts';
import type { RunStore } from '../../run/run-store.ts';
import { hasOpenSession } from '../../run/session.ts';
import { ActionRefused } from '../../run-changes/session/allowed-action.ts';
import { assertIsFor } from '../../run-changes/session/open-session.ts';
import { type ActionProposer, proposeAction } from '../../run-changes/session/propose-action.ts';
import { counted, METRICS } from '../../telemetry/metrics.ts';
import { actionView } from '../actions/action-view.ts';
import { mustLoadAction } from '../actions/list-actions.ts';
import { type DirectPorts, proposeDirect } from '../actions/propose-direct.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { Action } from '../contract/runs/actions.ts';
import type { McpCaller } from './mcp-caller.ts';
import { type OfferedTool, offeredTool, toolNamed, toolsWith } from './offered-tools.ts';

export type ToolPorts = DirectPorts &
  ActionProposer & {
    runs: RunStore;
    definitions: { connections(tenant: string): Promise<{ name: string }[]> };
  };

/** The input of a tool as a client sends it. `key`: the same one is the same call. */
export interface ToolCall {
  name: string;
  input: Record<string, unknown>;
  key: string | undefined;
}

/** The tools of one caller: what the tenant or the step of the session allows, and nothing that a client says. */
export interface ToolAccess {
  tools(): Promise<OfferedTool[]>;
  propose(call: ToolCall): Promise<Action>;
  /** An action of the same caller. */
  action(actionId: string): Promise<Action>;
}

export const toolAccess = (ports: ToolPorts, who: McpCaller): ToolAccess =>
  'session' in who ? sessionAccess(ports, who) : callerAccess(ports, who.caller);

function sessionAccess(ports: ToolPorts, { session }: Extract<McpCaller, { session: unknown }>): ToolAccess {
  const { tenant, runId, stepIndex } = session;
  return {
    async tools() {
      const found = await ports.runs.runAndStep(tenant, runId, stepIndex);
      if (!hasOpenSession(found?.step)) {
        throw new CountersignError('SESSION_CLOSED', 'the session is closed, or not yet recorded; it has no tools');
      }
      assertIsFor(session, found.step);
      const { actionsAllowed } = found.step.session;
      const tools = [...new Set(actionsAllowed.map(({ tool }) => tool))];
      return tools.map((tool) =>
        offeredTool(
          tool,
          actionsAllowed.filter((each) => each.tool === tool),
        ),
      );
    },
    async propose({ name, input, key = ports.ids.next('call') }) {
      // An unknown name is proposed, too: it is refused, counted and recorded like any other tool that is not allowed.
      const { action } = await proposeAction(ports, session, { tool: toolNamed(name) ?? name, input, key });
      return actionView(action);
    },
    async action(actionId) {
      return actionView(await mustLoadAction(ports, tenant, actionId, session));
    },
  };
}

function callerAccess(ports: ToolPorts, caller: Caller): ToolAccess {
  const { tenant, person } = caller;
  const usable = async () => {
    const connections = await ports.definitions.connections(tenant);
    const tools = toolsWith(connections.map(({ name }) => name));
    return caller.tools ? tools.filter((tool) => caller.tools?.includes(tool)) : tools;
  };
  return {
    tools: async () => (await usable()).map((tool) => offeredTool(tool)),
    async propose({ name, input, key }) {
      const tool = toolNamed(name);
      if (tool === undefined || !(await usable()).includes(tool)) throw refused(ports, caller);
      const { body } = await proposeDirect(ports, caller, key, { tool, input });
      return body;
    },
    async action(actionId) {
      const action = actionView(await mustLoadAction(ports, tenant, actionId));
      if (action.session === null && action.requestedBy === person) return action;
      throw new CountersignError('NOT_FOUND', `there is no action ${actionId}`);
    },
  };
}

/** The name stays out of log and message: a client chooses it. */
function refused({ log, telemetry }: ToolPorts, { tenant, person }: Caller): ActionRefused {
  log.warn('a call of an MCP client was refused', { tenant, person, because: 'tool_not_allowed' });
  telemetry?.record(counted(METRICS.actionsRefused, { result: 'tool_not_allowed' }));
  return new ActionRefused(
    'tool_not_allowed',
    'there is no such tool for this caller; tools/list has those that there are',
  );
}
