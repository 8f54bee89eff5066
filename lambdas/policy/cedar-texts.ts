import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { didYouMean } from '../entry/did-you-mean.ts';
import { canonicalJson } from '../run/canonical-json.ts';
import { readAttributes } from './cedar-answers.ts';
import type { Cedar, CedarRuntime } from './cedar-runtime.ts';
import { QUORUM_MAX_PEOPLE } from './policy.ts';
import { InvalidPolicies, type Mention, type PolicyRule } from './policy-engine.ts';

export const APPROVAL_ACTION = 'executeWithApproval';

const QUORUM_RANGE = `must be the number of people, "1" to "${QUORUM_MAX_PEOPLE}"`;

/** Unknown annotations are errors: a misspelt @quorum must not mean "one". */
const Annotations = z.strictObject({
  id: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/, 'use letters, digits, dots and dashes')
    .optional(),
  reason: z.string().max(300).optional(),
  tier: z.enum(RISKS).optional(),
  quorum: z
    .string()
    .regex(/^[1-9]\d?$/, QUORUM_RANGE)
    .transform(Number)
    .pipe(z.number().max(QUORUM_MAX_PEOPLE, QUORUM_RANGE))
    .optional(),
  groups: z
    .string()
    .transform((text) => text.split(',').map((group) => group.trim()))
    .pipe(z.array(z.string().min(1, 'name groups, separated by commas')))
    .optional(),
});
export type Annotations = z.infer<typeof Annotations>;

type CedarError = Extract<ReturnType<Cedar['validate']>, { type: 'failure' }>['errors'][number];
type PolicyJson = Extract<ReturnType<Cedar['policyToJson']>, { type: 'success' }>['json'];

export interface CedarPolicy extends PolicyRule {
  text: string;
  annotations: Annotations;
  mentions: Mention[];
  /** The attributes of the context that it reads; undefined if it uses the context in another way. */
  reads: string[] | undefined;
  place: { file: string; fileText: string; offsetBytes: number };
}

/** Parses all files and reports all problems at once. */
export function readCedarTexts(runtime: CedarRuntime, files: Record<string, string>): CedarPolicy[] {
  const problems: string[] = [];
  const policies = Object.entries(files).flatMap(([file, text]) => readFile(runtime, file, text, problems));
  for (const [index, { id, place }] of policies.entries()) {
    const first = policies.findIndex((other) => other.id === id);
    if (first < index) problems.push(at(place, 0, `another policy has @id("${id}"); ids must be unique`));
  }
  if (problems.length > 0) throw new InvalidPolicies(problems);
  return policies;
}

/** `default.cedar:12: what is wrong; what to do` */
export function problemAt({ place }: CedarPolicy, error: CedarError): string {
  return at(place, error.sourceLocations?.[0]?.start ?? 0, errorText(error));
}

function readFile(runtime: CedarRuntime, file: string, fileText: string, problems: string[]): CedarPolicy[] {
  const parts = runtime.use((cedar) => cedar.policySetTextToParts(fileText));
  if (parts.type === 'failure') {
    for (const error of parts.errors) {
      problems.push(at({ file, fileText, offsetBytes: 0 }, error.sourceLocations?.[0]?.start ?? 0, errorText(error)));
    }
    return [];
  }
  for (const text of parts.policy_templates) {
    problems.push(at(placeOf(file, fileText, text), 0, 'templates are not supported; write a policy for each use'));
  }
  return parts.policies.flatMap((text) => {
    const place = placeOf(file, fileText, text);
    const policy = readPolicy(runtime, text, place);
    if ('annotations' in policy) return [policy];
    problems.push(...policy.problems.map((problem) => at(place, 0, problem)));
    return [];
  });
}

function readPolicy(
  runtime: CedarRuntime,
  text: string,
  place: CedarPolicy['place'],
): CedarPolicy | { problems: string[] } {
  const answer = runtime.use((cedar) => cedar.policyToJson(text));
  if (answer.type === 'failure') return { problems: answer.errors.map(errorText) };
  const parsed = Annotations.safeParse(answer.json.annotations ?? {});
  if (!parsed.success) {
    return { problems: parsed.error.issues.flatMap(annotationProblems) };
  }
  const { id = `${place.file}:${lineOf(place, 0)}`, tier, quorum, groups } = parsed.data;
  const requiresPeople = tier !== undefined || quorum !== undefined || groups !== undefined;
  if (requiresPeople && !permitsWithApproval(answer.json)) {
    const wanted = `a permit of Action::"${APPROVAL_ACTION}"`;
    return { problems: [`@tier, @quorum and @groups are only allowed on ${wanted}`] };
  }
  const mentions = mentionsIn(answer.json).map((mention) => ({
    ...mention,
    place: `${place.file}:${lineOf(place, 0)}`,
  }));
  const { effect } = answer.json;
  const reads = readAttributes(answer.json);
  return { id, text, effect, content: canonicalJson(answer.json), annotations: parsed.data, mentions, reads, place };
}

const ANNOTATIONS = Object.keys(Annotations.shape);

function annotationProblems(issue: z.core.$ZodIssue): string[] {
  if (issue.code !== 'unrecognized_keys') return [`@${issue.path.join('.')}: ${issue.message}`];
  return issue.keys.map((name) => {
    const hint = didYouMean(name, ANNOTATIONS, (close) => `@${close}`);
    return `unknown annotation @${name}${hint || `; known: ${ANNOTATIONS.map((each) => `@${each}`).join(', ')}`}`;
  });
}

const Named = z.object({ type: z.enum(['Operation', 'Connector']), id: z.string() });

/** All tools and connectors that a policy names. */
function mentionsIn(json: unknown): Pick<Mention, 'kind' | 'id'>[] {
  if (typeof json !== 'object' || json === null) return [];
  const named = Named.safeParse(json);
  if (named.success) return [{ kind: named.data.type, id: named.data.id }];
  return Object.values(json).flatMap(mentionsIn);
}

function permitsWithApproval({ effect, action }: PolicyJson): boolean {
  if (effect !== 'permit') return false;
  if (action.op === 'All') return true;
  const named = 'entities' in action ? action.entities : 'entity' in action ? [action.entity] : [];
  return named.some((uid) => ('__entity' in uid ? uid.__entity : uid).id === APPROVAL_ACTION);
}

function placeOf(file: string, fileText: string, policyText: string): CedarPolicy['place'] {
  const before = fileText.slice(0, Math.max(fileText.indexOf(policyText), 0));
  return { file, fileText, offsetBytes: Buffer.byteLength(before) };
}

function at(place: CedarPolicy['place'], offsetBytes: number, message: string): string {
  return `${place.file}:${lineOf(place, offsetBytes)}: ${message}`;
}

const NEWLINE = 0x0a;

/** Cedar reports offsets in bytes. */
function lineOf(place: CedarPolicy['place'], offsetBytes: number): number {
  const before = Buffer.from(place.fileText).subarray(0, place.offsetBytes + offsetBytes);
  return before.filter((byte) => byte === NEWLINE).length + 1;
}

const errorText = ({ message, help }: CedarError) => (help ? `${message}; ${help}` : message);
