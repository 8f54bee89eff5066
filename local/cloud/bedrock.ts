/** Bedrock's Converse without a model. It returns scripted answers, or explains how to script one. */
import * as z from 'zod';
import { tryParseJsonBytes } from '../../lambdas/entry/parse-json.ts';
import { ACCOUNT, AwsError, REGION } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { AccessCheck } from '../iam/access-checks.ts';

const CONVERSE = /^\/model\/([^/]+)\/converse$/;
/** A model id with a geography is an inference profile of the account. */
const INFERENCE_PROFILE = /^(us|us-gov|eu|apac|jp|au|ca|global)\.(.+)$/;
/** An approximation for English. */
const CHARACTERS_PER_TOKEN = 4;
const DEFAULT_MAX_TOKENS = 4_096;
const MAX_QUESTIONS = 100;

const Blocks = z.array(z.object({ text: z.string().min(1) })).min(1);
const ConverseRequest = z.object({
  system: z.array(z.object({ text: z.string().min(1) })).default([]),
  messages: z.array(z.object({ role: z.enum(['user', 'assistant']), content: Blocks })).min(1),
  inferenceConfig: z
    .object({ maxTokens: z.int().min(1).optional(), temperature: z.number().min(0).max(1).optional() })
    .default({}),
});
type ConverseRequest = z.infer<typeof ConverseRequest>;

/** An answer matches the model and a part of the question, if they are given. The newest matching answer is used. */
const ScriptedAnswer = z.strictObject({
  model: z.string().optional(),
  contains: z.string().optional(),
  /** Text, or an object that is returned as JSON. */
  answer: z.union([z.string().min(1), z.record(z.string(), z.unknown())]),
  /** How many times the answer is used. Without it, always. */
  times: z.int().min(1).optional(),
});
type ScriptedAnswer = z.infer<typeof ScriptedAnswer>;

interface Question extends ConverseRequest {
  model: string;
}

export class LocalBedrock implements RestService {
  #answers: ScriptedAnswer[] = [];
  #questions: Question[] = [];

  describe({ path }: WireRequest): { operation: string; checks: AccessCheck[] } {
    const model = modelIn(path);
    if (model === undefined) return { operation: 'Unknown', checks: [] };
    return {
      operation: 'Converse',
      checks: modelArns(model).map((resource) => ({ action: 'bedrock:InvokeModel', resource })),
    };
  }

  async handle({ path, body }: WireRequest): Promise<WireReply> {
    const model = modelIn(path);
    if (model === undefined)
      throw new AwsError('UnknownOperationException', 'The local Bedrock supports only Converse.');
    const request = ConverseRequest.safeParse(tryParseJsonBytes(body));
    if (!request.success) throw new AwsError('ValidationException', z.prettifyError(request.error));
    this.#questions = [...this.#questions, { model, ...request.data }].slice(-MAX_QUESTIONS);
    const reply = converse(request.data, this.#answerTo(model, request.data));
    return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(reply) };
  }

  /** `POST /_local/models` */
  script(answer: unknown): ReturnType<LocalBedrock['report']> {
    this.#answers.unshift(ScriptedAnswer.parse(answer));
    return this.report();
  }

  /** `DELETE /_local/models` */
  forget(): ReturnType<LocalBedrock['report']> {
    this.#answers = [];
    this.#questions = [];
    return this.report();
  }

  /** `GET /_local/models`: the scripted answers and the last questions. */
  report(): { answers: ScriptedAnswer[]; questions: Question[] } {
    return structuredClone({ answers: this.#answers, questions: this.#questions });
  }

  #answerTo(model: string, request: ConverseRequest): string {
    const asked = textsOf(request).join('\n');
    const scripted = this.#answers.find(
      (each) => (each.model ?? model) === model && asked.includes(each.contains ?? ''),
    );
    if (!scripted) return unscripted(model, request);
    if (scripted.times !== undefined) scripted.times -= 1;
    this.#answers = this.#answers.filter(({ times }) => times !== 0);
    return typeof scripted.answer === 'string' ? scripted.answer : JSON.stringify(scripted.answer);
  }
}

function converse(request: ConverseRequest, answer: string) {
  const maxTokens = request.inferenceConfig.maxTokens ?? DEFAULT_MAX_TOKENS;
  const cut = tokensOf(answer) > maxTokens;
  const text = cut ? answer.slice(0, maxTokens * CHARACTERS_PER_TOKEN) : answer;
  const inputTokens = textsOf(request)
    .map(tokensOf)
    .reduce((sum, tokens) => sum + tokens, 0);
  const outputTokens = tokensOf(text);
  return {
    output: { message: { role: 'assistant', content: [{ text }] } },
    stopReason: cut ? 'max_tokens' : 'end_turn',
    usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    metrics: { latencyMs: 1 },
  };
}

/** The answer without a script. It is JSON if the prompt asks for JSON, so that a workflow continues. */
function unscripted(model: string, { system }: ConverseRequest): string {
  const answer = `${model} has no scripted answer; add one with POST /_local/models {"contains": "...", "answer": "..."}`;
  return system.some(({ text }) => /\bJSON\b/.test(text)) ? JSON.stringify({ answer }) : answer;
}

function modelIn(path: string): string | undefined {
  const [, encoded] = CONVERSE.exec(path) ?? [];
  return encoded === undefined ? undefined : decodeURIComponent(encoded);
}

/** A call of a profile needs a grant for the profile and for its model. */
function modelArns(model: string): string[] {
  const foundation = (id: string) => `arn:aws:bedrock:${REGION}::foundation-model/${id}`;
  const [, , behind] = INFERENCE_PROFILE.exec(model) ?? [];
  if (behind === undefined) return [foundation(model)];
  return [`arn:aws:bedrock:${REGION}:${ACCOUNT}:inference-profile/${model}`, foundation(behind)];
}

const textsOf = ({ system, messages }: ConverseRequest): string[] =>
  [system, ...messages.map(({ content }) => content)].flat().map(({ text }) => text);

const tokensOf = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN);
