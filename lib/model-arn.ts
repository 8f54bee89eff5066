/** A model id that starts with a geography is an inference profile, which belongs to the account. */
const INFERENCE_PROFILE = /^(us|us-gov|eu|apac|jp|au|ca|global)\./;

/** The ARN to grant for a model. An id means the model in the stage's own region; an ARN is used as it is. */
export function modelArn(stack: { partition: string; region: string; account: string }, model: string): string {
  if (model.startsWith('arn:')) return model;
  const bedrock = `arn:${stack.partition}:bedrock:${stack.region}`;
  return INFERENCE_PROFILE.test(model)
    ? `${bedrock}:${stack.account}:inference-profile/${model}`
    : `${bedrock}::foundation-model/${model}`;
}
