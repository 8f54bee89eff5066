import { Aws } from 'aws-cdk-lib';
import { CfnSecurityGroup, CfnVPCEndpoint } from 'aws-cdk-lib/aws-ec2';
import { Construct } from 'constructs';
import type { StageConfig, VpcConfig } from './stage-config.ts';

/** Free. */
const GATEWAYS = ['dynamodb', 's3'];
/** Each costs some dollars a month in each subnet. */
const INTERFACES = ['kms', 'lambda', 'secretsmanager', 'sqs', 'states'];
const HTTPS = 443;

/**
 * Private ways to the AWS services that functions call. The live feed sends through the public address of its WebSocket
 * API, which no endpoint offers: with it, and for targets in the internet, the subnets need a NAT gateway.
 */
export class VpcEndpoints extends Construct {
  constructor(scope: Construct, id: string, { config, vpc }: { config: StageConfig; vpc: VpcConfig }) {
    super(scope, id);
    const serviceName = (service: string) => `com.amazonaws.${Aws.REGION}.${service}`;
    for (const service of GATEWAYS) {
      new CfnVPCEndpoint(this, service, {
        vpcEndpointType: 'Gateway',
        serviceName: serviceName(service),
        vpcId: vpc.id,
        routeTableIds: vpc.routeTableIds,
      });
    }
    const fromFunctions = new CfnSecurityGroup(this, 'FromFunctions', {
      groupDescription: `Countersign ${config.stage}: functions reach the endpoints of AWS services`,
      vpcId: vpc.id,
      securityGroupIngress: vpc.securityGroupIds.map((sourceSecurityGroupId) => ({
        ipProtocol: 'tcp',
        fromPort: HTTPS,
        toPort: HTTPS,
        sourceSecurityGroupId,
        description: 'Functions of the stage',
      })),
    });
    const optional = [
      ...(config.models.length > 0 ? ['bedrock-runtime'] : []),
      ...(config.traces === 'xray' ? ['xray'] : []),
    ];
    for (const service of [...INTERFACES, ...optional]) {
      new CfnVPCEndpoint(this, service, {
        vpcEndpointType: 'Interface',
        serviceName: serviceName(service),
        vpcId: vpc.id,
        subnetIds: vpc.subnetIds,
        securityGroupIds: [fromFunctions.attrGroupId],
        privateDnsEnabled: true,
      });
    }
  }
}
