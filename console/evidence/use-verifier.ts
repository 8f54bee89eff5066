import { useQuery } from '@tanstack/react-query';
import { call } from '../data/api.ts';

/** The keys that this stage publishes, as their file. */
export const usePublishedKeys = () =>
  useQuery({
    queryKey: ['evidence-keys'],
    queryFn: async () => JSON.stringify(await call('GET /.well-known/countersign-keys.json'), null, 2),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The verifier, which only these pages load. After that it makes no request. */
export const useVerifier = () =>
  useQuery({ queryKey: ['verifier'], queryFn: () => import('./verifier.ts'), staleTime: Number.POSITIVE_INFINITY });
