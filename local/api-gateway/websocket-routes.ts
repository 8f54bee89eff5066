import type { ResolvedStack } from '../template/template.ts';
import { functionArnOf, optionalText } from './http-routes.ts';

export interface SocketRoute {
  functionArn: string;
  roleArn: string | undefined;
}

export interface SocketApi {
  apiId: string;
  /** The path of its URL. */
  stage: string;
  routes: ReadonlyMap<string, SocketRoute>;
}

const ROUTE_SELECTION = '$request.body.action';

/** The WebSocket APIs of the template. What the local host would run differently from AWS is refused by name. */
export function socketApis(stack: ResolvedStack): SocketApi[] {
  const apis = stack
    .ofType('AWS::ApiGatewayV2::Api')
    .filter(({ properties }) => properties.ProtocolType === 'WEBSOCKET');
  const integrations = new Map(stack.ofType('AWS::ApiGatewayV2::Integration').map((each) => [each.ref, each]));
  return apis.map(({ logicalId, ref: apiId, properties }) => {
    if (properties.RouteSelectionExpression !== ROUTE_SELECTION) {
      throw new Error(`${logicalId}: the local host supports only the route selection ${ROUTE_SELECTION}`);
    }
    const ofApi = (type: string) => stack.ofType(type).filter((each) => each.properties.ApiId === apiId);
    const [stage, ...others] = ofApi('AWS::ApiGatewayV2::Stage');
    if (!stage || others.length > 0) throw new Error(`${logicalId}: the local host supports one stage for each API`);
    const routes = ofApi('AWS::ApiGatewayV2::Route').map((route) => {
      if ((route.properties.AuthorizationType ?? 'NONE') !== 'NONE') {
        throw new Error(`${route.logicalId}: the local host supports no authorizer of a WebSocket API`);
      }
      const target = integrations.get(String(route.properties.Target).replace('integrations/', ''));
      if (target?.properties.IntegrationType !== 'AWS_PROXY') {
        throw new Error(`${route.logicalId}: the local host supports only AWS_PROXY integrations`);
      }
      const functionArn = functionArnOf(String(target.properties.IntegrationUri));
      const roleArn = optionalText(target.properties.CredentialsArn);
      return [String(route.properties.RouteKey), { functionArn, roleArn }] as const;
    });
    return { apiId, stage: String(stage.properties.StageName), routes: new Map(routes) };
  });
}
