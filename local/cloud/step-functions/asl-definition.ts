/** Which state machines the local host runs. Everything else is refused at the start, with the state that needs it. */
import { createRequire } from 'node:module';
import { type Fields, isFields } from '../request-fields.ts';
import { parseIntrinsic, parsePath } from './asl-paths.ts';

export interface StateDefinition extends Fields {
  Type: string;
  Next?: string;
  End?: boolean;
}

export interface MachineDefinition {
  StartAt: string;
  States: Record<string, StateDefinition>;
  TimeoutSeconds?: number;
}

export const INVOKE = 'arn:aws:states:::lambda:invoke';
export const INVOKE_WITH_TOKEN = 'arn:aws:states:::lambda:invoke.waitForTaskToken';
const FUNCTION_ARN = /^arn:aws:lambda:[^:]*:\d*:function:/;
const TYPES = ['Task', 'Wait', 'Choice', 'Pass', 'Succeed', 'Fail', 'Parallel'];
/** Fields of JSONata and of variables; running on without them would give other results than AWS. */
const UNSUPPORTED_FIELDS = ['Assign', 'Arguments', 'Output', 'Credentials'];

/** Throws one error that lists everything the host lacks for a definition, or else everything wrong with it. */
export function checkDefinition(logicalId: string, definition: object): MachineDefinition {
  const machine = definition as MachineDefinition;
  const own = machineProblems(machine as unknown as Fields);
  const problems = own.length > 0 ? own : schemaProblems(definition);
  if (problems.length > 0) {
    throw new Error(`${logicalId}: the local Step Functions cannot run this definition:\n- ${problems.join('\n- ')}`);
  }
  return machine;
}

interface Validation {
  isValid: boolean;
  errorsText(separator?: string): string;
}

/** Definitions found valid: the validator compiles its schemas anew for each call, which takes 100 ms. */
const valid = new Set<string>();

function schemaProblems(definition: object): string[] {
  const text = JSON.stringify(definition);
  if (valid.has(text)) return [];
  // CommonJS without type declarations; loaded here because a template without state machines does not need it.
  const validate = createRequire(import.meta.url)('asl-validator') as (definition: object) => Validation;
  // A copy, because the validator writes defaults into what it is given.
  const result = validate(JSON.parse(text));
  if (!result.isValid) return [result.errorsText('; ')];
  valid.add(text);
  return [];
}

function machineProblems(machine: Fields): string[] {
  const language = queryLanguageProblem('the state machine', machine);
  const states = isFields(machine.States) ? Object.entries(machine.States) : [];
  return [...language, ...states.flatMap(([name, state]) => (isFields(state) ? stateProblems(name, state) : []))];
}

function stateProblems(name: string, state: Fields): string[] {
  const problems = [...queryLanguageProblem(name, state), ...pathProblems(name, state)];
  if (!TYPES.includes(String(state.Type))) problems.push(`${name}: no ${state.Type} states`);
  for (const field of UNSUPPORTED_FIELDS) if (field in state) problems.push(`${name}: no ${field}`);
  const resource = String(state.Resource);
  const known = resource === INVOKE || resource === INVOKE_WITH_TOKEN || FUNCTION_ARN.test(resource);
  if (state.Type === 'Task' && !known) problems.push(`${name}: no integration ${resource}`);
  const branches = state.Type === 'Parallel' && Array.isArray(state.Branches) ? state.Branches.filter(isFields) : [];
  return [...problems, ...branches.flatMap(machineProblems)];
}

function queryLanguageProblem(name: string, { QueryLanguage }: Fields): string[] {
  return QueryLanguage === undefined || QueryLanguage === 'JSONPath' ? [] : [`${name}: no ${QueryLanguage}`];
}

/** Every path and intrinsic function, wherever it stands in a state; branches are looked at on their own. */
function pathProblems(name: string, value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => pathProblems(name, entry));
  if (!isFields(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'Branches') return [];
    if (typeof inner !== 'string') return pathProblems(name, inner);
    if (!key.endsWith('.$') && !(key.endsWith('Path') && inner.startsWith('$')) && key !== 'Variable') return [];
    try {
      if (inner.startsWith('$')) parsePath(inner);
      else parseIntrinsic(inner);
      return [];
    } catch (error) {
      return [`${name}: ${error instanceof Error ? error.message : error}`];
    }
  });
}
