/**
 * Bundles contain this file in place of `@aws-sdk/credential-provider-node` (lib/bundle-functions.ts), which searches for credentials
 * in files, processes and other services, and contains their clients: 90 KB. Lambda passes the credentials of the role in variables.
 */
export const defaultProvider = () => async () => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  if (!accessKeyId || !secretAccessKey) {
    throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set; Lambda sets them');
  }
  const { AWS_SESSION_TOKEN: sessionToken } = process.env;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
};
