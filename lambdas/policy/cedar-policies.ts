import { hashOf } from '../run/canonical-json.ts';
import { stricter } from './approval-requirement.ts';
import { CedarAnswers } from './cedar-answers.ts';
import { cedarQuestion } from './cedar-request.ts';
import type { CedarRuntime } from './cedar-runtime.ts';
import { APPROVAL_ACTION, type CedarPolicy, problemAt, readCedarTexts } from './cedar-texts.ts';
import type { ApprovalRequirement, PolicyDecision, PolicyRequest, TenantPolicies } from './policy.ts';
import {
  InvalidPolicies,
  type Mention,
  type PolicyEngine,
  type PolicyRule,
  type PreparedPolicies,
} from './policy-engine.ts';
import { cedarSetText } from './policy-texts.ts';
import type { ShippedPolicies } from './shipped-policies.ts';

type CedarTexts = Extract<TenantPolicies, { engine: 'cedar' }>;

/** Cedar: the shipped policies and the tenant's, validated against the schema. */
export class CedarPolicies implements PolicyEngine<'cedar'> {
  readonly #runtime: CedarRuntime;
  readonly #shipped: () => ShippedPolicies;

  constructor(runtime: CedarRuntime, shipped: () => ShippedPolicies) {
    this.#runtime = runtime;
    this.#shipped = shipped;
  }

  async prepare({ files }: CedarTexts): Promise<CedarSet> {
    const shipped = this.#shipped();
    const taken = Object.keys(files).filter((file) => Object.hasOwn(shipped.files, file));
    if (taken.length > 0)
      throw new InvalidPolicies(taken.map((file) => `${file}: a shipped policy file has this name; choose another`));
    const { policies, warnings } = this.#read(shipped, files);
    const hash = hashOf(cedarSetText(shipped, files));
    const own = policies.filter(({ place }) => Object.hasOwn(files, place.file));
    const empty = Object.keys(files).filter((file) => !own.some(({ place }) => place.file === file));
    const emptyFiles = empty.map((file) => `${file}: contains no policy; add one or remove the file`);
    return new CedarSet(this.#runtime, { hash, warnings: [...warnings, ...emptyFiles], policies, own });
  }

  #read(shipped: ShippedPolicies, files: Record<string, string>) {
    try {
      const policies = readCedarTexts(this.#runtime, { ...shipped.files, ...files });
      return { policies, warnings: this.#validate(shipped.schema, policies) };
    } catch (error) {
      if (!isExhausted(error)) throw error;
      throw new InvalidPolicies([
        'these policies exhaust the memory of the policy engine; nest expressions less deeply',
      ]);
    }
  }

  /** Returns warnings; throws InvalidPolicies for errors. */
  #validate(schema: string, policies: CedarPolicy[]): string[] {
    const answer = this.#runtime.use((cedar) =>
      cedar.validate({
        schema,
        policies: { staticPolicies: textsById(policies) },
        validationSettings: { mode: 'strict' },
      }),
    );
    if (answer.type === 'failure') throw new InvalidPolicies(answer.errors.map(({ message }) => message));
    const located = (errors: typeof answer.validationErrors) =>
      errors.map(({ policyId, error }) => {
        const policy = policies.find(({ id }) => id === policyId);
        return policy ? problemAt(policy, error) : error.message;
      });
    if (answer.validationErrors.length > 0) throw new InvalidPolicies(located(answer.validationErrors));
    return [...located(answer.validationWarnings), ...answer.otherWarnings.map(({ message }) => message)];
  }
}

/** The attribute `context.before`. In a comment it costs an unnecessary read of the target. */
const BEFORE = /\bbefore\b/;

interface Answer {
  permitted: boolean;
  by: readonly CedarPolicy[];
}

class CedarSet implements PreparedPolicies {
  readonly hash: string;
  readonly warnings: readonly string[];
  readonly ids: readonly string[];
  readonly mentions: readonly Mention[];
  readonly rules: readonly PolicyRule[];
  readonly usesBefore: boolean;
  readonly #runtime: CedarRuntime;
  readonly #texts: Record<string, string>;
  readonly #byId: ReadonlyMap<string, CedarPolicy>;
  readonly #answers: CedarAnswers<Answer>;

  constructor(
    runtime: CedarRuntime,
    set: { hash: string; warnings: string[]; policies: CedarPolicy[]; own: CedarPolicy[] },
  ) {
    this.hash = set.hash;
    this.warnings = set.warnings;
    this.ids = set.own.map(({ id }) => id);
    this.rules = set.own;
    this.mentions = set.own.flatMap(({ mentions }) => mentions);
    this.usesBefore = set.policies.some(({ text }) => BEFORE.test(text));
    this.#runtime = runtime;
    this.#texts = textsById(set.policies);
    this.#byId = new Map(set.policies.map((policy) => [policy.id, policy]));
    const isKnown = set.policies.every(({ reads }) => reads !== undefined);
    this.#answers = new CedarAnswers(isKnown ? new Set(set.policies.flatMap(({ reads = [] }) => reads)) : undefined);
  }

  /** Two questions: is it permitted without approval? If not, is it permitted with approval? */
  decide(request: PolicyRequest): PolicyDecision {
    const alone = this.#ask(request, 'execute');
    if (alone.permitted) return { verdict: 'allow', ...this.#grounds(alone.by) };
    const withApproval = this.#ask(request, APPROVAL_ACTION);
    if (!withApproval.permitted) {
      const grounds = this.#grounds(withApproval.by);
      const reasons = withApproval.by.length > 0 ? grounds.reasons : ['no policy permits it'];
      return { verdict: 'deny', code: 'POLICY_DENIED', ...grounds, reasons };
    }
    return {
      verdict: 'needs_approval',
      requirement: requirementOf(withApproval.by, request),
      // A forbid in the first question is the reason for the approval.
      ...this.#grounds([...alone.by, ...withApproval.by]),
    };
  }

  #ask(request: PolicyRequest, asked: string): Answer {
    const question = cedarQuestion(request, asked);
    return this.#answers.answer(question, () => this.#askEngine(question));
  }

  #askEngine(question: ReturnType<typeof cedarQuestion>): Answer {
    const answer = this.#runtime.ask({ hash: this.hash, policies: this.#texts }, question);
    if (answer.type === 'failure') throw new Error(answer.errors.map(({ message }) => message).join('; '));
    const { decision, diagnostics } = answer.response;
    // Cedar skips a policy that fails. A forbid must not be skipped, so the whole decision fails.
    const [failed] = diagnostics.errors;
    if (failed) throw new Error(`${failed.policyId}: ${failed.error.message}`);
    return { permitted: decision === 'allow', by: diagnostics.reason.sort().map((id) => this.#policy(id)) };
  }

  #policy(id: string): CedarPolicy {
    const policy = this.#byId.get(id);
    if (!policy) throw new Error(`the policy engine returned the unknown policy "${id}"`);
    return policy;
  }

  #grounds(by: readonly CedarPolicy[]) {
    return {
      policyHash: this.hash,
      policies: by.map(({ id }) => id),
      reasons: by.map(({ id, annotations }) => annotations.reason ?? `policy ${id}`),
    };
  }
}

/** The strictest requirement of all permits applies. Without @tier, the tier is the risk of the action. */
function requirementOf(permits: readonly CedarPolicy[], { action }: PolicyRequest): ApprovalRequirement {
  return permits
    .map(({ annotations: { tier = action.risk, quorum = 1, groups } }) => ({
      tier,
      quorum,
      groups: groups ? [groups] : [],
    }))
    .reduce(stricter);
}

const textsById = (policies: readonly CedarPolicy[]) => Object.fromEntries(policies.map(({ id, text }) => [id, text]));

/** WebAssembly throws these errors when it has no stack or memory left. */
const isExhausted = (error: unknown) =>
  error instanceof RangeError || (error instanceof Error && error.name === 'RuntimeError');
