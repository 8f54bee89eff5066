import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { bundleFunctions } from './bundle-functions.ts';
import { FirewallStack } from './console/firewall.ts';
import { CountersignStack } from './stack.ts';
import { readStageConfig, StageError } from './stage-config.ts';

/** Deploys the firewall of a stage instead of the stage: `-c part=firewall`. */
const FIREWALL = 'firewall';

/** The CDK app of one stage. The CDK command line, the local host and the tests all use it. */
export function countersignApp(
  options: { stage?: string; part?: string; outdir?: string; context?: Record<string, unknown> } = {},
): App {
  const app = new App({ context: options.context, outdir: options.outdir });
  const config = readStageConfig(options.stage ?? app.node.tryGetContext('stage'), app.node.tryGetContext('stages'));
  const { firewall } = config;
  const part: unknown = options.part ?? app.node.tryGetContext('part');
  if (part === FIREWALL) {
    if (!firewall) throw new StageError(`stage "${config.stage}" has no firewall; add "firewall": {} to its settings`);
    new FirewallStack(app, { ...config, firewall });
  } else if (part !== undefined) {
    throw new StageError(`"${String(part)}" is not a part of a stage; leave it out, or use -c part=${FIREWALL}`);
  } else {
    if (firewall && !firewall.webAclArn) throw new StageError(missingWebAcl(config.stage));
    new CountersignStack(app, { config, bundles: bundleFunctions() });
  }
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}

const missingWebAcl = (stage: string) =>
  `stage "${stage}": the firewall has no web ACL; deploy one with npx cdk deploy -c stage=${stage} -c part=${FIREWALL}, ` +
  'and name its output WebAclArn as firewall.webAclArn, or name a web ACL of your own';
