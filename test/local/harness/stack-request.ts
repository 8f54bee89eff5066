import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { invokeFunction } from '../../../lambdas/entry/invoke-function.ts';
import { REGION } from '../../../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../../../local/aws/aws-endpoint.ts';
import type { TestHost } from './test-host.ts';

/** Sends the request of CloudFormation for a custom resource to its function, and returns what the function responds. */
export async function requestOfStack(host: TestHost, resourceType: string, RequestType: 'Create' | 'Delete') {
  const resource = host.only(resourceType);
  const { promise: response, resolve } = Promise.withResolvers<string>();
  const server = createServer((request, reply) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      reply.end();
      resolve(body);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    await invokeFunction(
      {
        functionName: host.stack.byArn(String(resource.properties.ServiceToken))?.ref ?? '',
        region: REGION,
        endpoint: host.clientConfig().endpoint,
        credentials: HOST_CREDENTIALS,
      },
      {
        RequestType,
        ResponseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        ...{ StackId: 'stack', RequestId: 'request', LogicalResourceId: resource.logicalId },
        ResourceProperties: resource.properties,
      },
    );
    return JSON.parse(await response) as { Status: string; Data: Record<string, string> };
  } finally {
    server.close();
  }
}
