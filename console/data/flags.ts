import type { ResponseFrom } from '../../client/api-client.ts';
import { useApi } from './api.ts';

export type Flag = ResponseFrom<'GET /api/v1/settings'>['flags'][number];

/** The flags of the tenant as they apply. Empty until they are known. */
export const useFlags = (): readonly Flag[] => useApi('GET /api/v1/settings', {}, { every: 60_000 }).data?.flags ?? [];

/** On until it is known. */
export const useFlag = (name: Flag['name']): boolean => useFlags().find((flag) => flag.name === name)?.on ?? true;
