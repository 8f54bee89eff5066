import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { bundleFunctions } from './bundle-functions.ts';
import { CountersignStack } from './stack.ts';
import { readStageConfig } from './stage-config.ts';

/** The CDK app of one stage. The CDK command line, the local host and the tests all use it. */
export function countersignApp(
  options: { stage?: string; outdir?: string; context?: Record<string, unknown> } = {},
): App {
  const app = new App({ context: options.context, outdir: options.outdir });
  const config = readStageConfig(options.stage ?? app.node.tryGetContext('stage'), app.node.tryGetContext('stages'));
  new CountersignStack(app, { config, bundles: bundleFunctions() });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}
