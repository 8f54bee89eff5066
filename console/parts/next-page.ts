import { notify } from '../shell/notices.tsx';

/** What an action has done, which perhaps left the page: another page clears the notices first. */
export function notifyOnNextPage(text: string, type: 'success' | 'warning' = 'success'): void {
  setTimeout(() => notify(type, text));
}
