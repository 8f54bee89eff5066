/** US dollars per million tokens. */
interface Price {
  input: number;
  output: number;
}

/**
 * On-demand list prices in us-east-1 (https://aws.amazon.com/bedrock/pricing/), compared with several price trackers on
 * 2026-11-16. For a model that is not listed, the tokens are recorded but not the dollars.
 */
const PRICES: Record<string, Price> = {
  'amazon.nova-micro-v1:0': { input: 0.035, output: 0.14 },
  'amazon.nova-lite-v1:0': { input: 0.06, output: 0.24 },
  'amazon.nova-pro-v1:0': { input: 0.8, output: 3.2 },
  'anthropic.claude-3-5-haiku-20241022-v1:0': { input: 0.8, output: 4 },
  'global.anthropic.claude-haiku-4-5-20251001-v1:0': { input: 1, output: 5 },
  'global.anthropic.claude-sonnet-4-5-20250929-v1:0': { input: 3, output: 15 },
};

const MILLION = 1_000_000;
/** Costs are rounded to nano-dollars, less than one token costs, so that sums can be compared. */
const NANO_DOLLARS = 1e9;

export function usdOf(model: string, inputTokens: number, outputTokens: number): number | undefined {
  const price = PRICES[model];
  if (!price) return undefined;
  const usd = (inputTokens * price.input + outputTokens * price.output) / MILLION;
  return Math.round(usd * NANO_DOLLARS) / NANO_DOLLARS;
}
