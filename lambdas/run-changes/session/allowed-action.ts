import type { Operation } from '../../connectors/connector.ts';
import { checkedCall, selectingFields, topOf } from '../../proposal/checked-call.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import type { ActionRefusal, ActionRisk, AllowedAction, SessionFacts } from '../../run/session.ts';

/** A call as a session proposes it. */
export interface ProposedCall {
  tool: string;
  input: Record<string, unknown>;
}

export interface AllowedCall extends ProposedCall {
  /** The fields that select the target, and that the session chose: people must approve them. */
  chosen: string[];
  risk?: ActionRisk;
}

/** A call that the step does not allow. It is counted, and recorded as an event. */
export class ActionRefused extends CountersignError {
  readonly because: ActionRefusal;
  constructor(because: ActionRefusal, message: string) {
    super('ACTION_NOT_ALLOWED', message);
    this.because = because;
  }
}

/**
 * The call that a session may make: with a tool that its step lists, and with the input that the step fixes for it. The
 * session chooses only the other fields. If one of them selects the target, an approval shows that.
 */
export function allowedCall(session: SessionFacts, { tool, input }: ProposedCall): AllowedCall {
  const ofTool = session.actionsAllowed.filter((each) => each.tool === tool);
  if (ofTool.length === 0) {
    const tools = [...new Set(session.actionsAllowed.map((each) => each.tool))].join(', ');
    throw new ActionRefused(
      'tool_not_allowed',
      `the step does not allow this tool; it allows ${tools === '' ? 'none' : tools}`,
    );
  }
  const allowed = ofTool.find((each) => contradictions(each, input).length === 0);
  if (!allowed) {
    const fields = contradictions(ofTool[0] as AllowedAction, input).join(', ');
    throw new ActionRefused('input_not_allowed', `${tool}: the step fixes ${fields}; leave it out`);
  }
  const fixed = allowed.with ?? {};
  const whole = { ...input, ...fixed };
  const isFixed = (field: string) => Object.hasOwn(fixed, field);
  const operation = checkedInput(tool, whole, isFixed);
  const chosen = selectingFields(operation, whole).filter((field) => !isFixed(topOf(field)));
  return { tool, input: whole, chosen, ...(allowed.risk && { risk: allowed.risk }) };
}

function checkedInput(tool: string, input: object, isFixed: (field: string) => boolean): Operation {
  try {
    return checkedCall(tool, input, isFixed);
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'INPUT_INVALID') {
      throw new ActionRefused('input_not_allowed', error.message);
    }
    throw error;
  }
}

/** The fields with another value than the step fixes. */
const contradictions = ({ with: fixed = {} }: AllowedAction, input: Record<string, unknown>): string[] =>
  Object.keys(fixed).filter(
    (field) => Object.hasOwn(input, field) && canonicalJson(input[field]) !== canonicalJson(fixed[field]),
  );
