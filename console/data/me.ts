import { useApi } from './api.ts';

/** Who is signed in, with which rights. */
export const useMe = () => useApi('GET /api/v1/me', {});

/** Whether the role of the signed-in person has a right. The API decides; this only explains. */
export function useRight(right: string): boolean {
  return useMe().data?.rights.includes(right) ?? false;
}
