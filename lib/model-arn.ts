/** A geography in front of a model's id makes it an inference profile, which belongs to the account. */
const INFERENCE_PROFILE = /^(us|us-gov|eu|apac|jp|au|ca|global)\./;

/** What must be granted for a stage to ask this model: an id stands for one of the stage's own region, an ARN for itself. */
export function modelArn(stack: { partition: string; region: string; account: string }, model: string): string {
  if (model.startsWith('arn:')) return model;
  const bedrock = `arn:${stack.partition}:bedrock:${stack.region}`;
  return INFERENCE_PROFILE.test(model)
    ? `${bedrock}:${stack.account}:inference-profile/${model}`
    : `${bedrock}::foundation-model/${model}`;
}
