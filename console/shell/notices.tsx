import Alert from '@cloudscape-design/components/alert';
import { useSyncExternalStore } from 'react';
import { UntrustedText } from '../parts/untrusted-text.tsx';

interface Notice {
  id: number;
  type: 'success' | 'error' | 'info' | 'warning';
  text: string;
  /** Stays when the next page is shown. */
  isForNextPage: boolean;
}

let notices: readonly Notice[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function change(next: readonly Notice[]): void {
  notices = next;
  for (const listener of listeners) listener();
}

/** Shows above the page what an action has done. Screen readers read it. */
export function notify(type: Notice['type'], text: string, isForNextPage = false): void {
  lastId += 1;
  change([...notices.slice(-2), { id: lastId, type, text, isForNextPage }]);
}

/** When another page is shown. */
export const clearNotices = (): void =>
  change(notices.filter((each) => each.isForNextPage).map((each) => ({ ...each, isForNextPage: false })));

export function Notices() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => notices,
  );
  return (
    <div role="status" aria-live="polite" className="notices">
      {shown.map(({ id, type, text }) => (
        <Alert
          key={id}
          type={type}
          dismissible
          dismissAriaLabel="Close"
          onDismiss={() => change(notices.filter((notice) => notice.id !== id))}
        >
          <UntrustedText text={text} lines="many" max={1_000} />
        </Alert>
      ))}
    </div>
  );
}
