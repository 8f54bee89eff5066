import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { useKeys } from './keyboard.ts';

const KEYS: readonly [key: string, effect: string][] = [
  ['/', 'Go to the filter of a list'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['a', 'Approve (asks before it does)'],
  ['r', 'Reject (asks for a reason)'],
  ['e', 'Edit the write (somebody else then approves it)'],
  ['i', 'Inbox'],
  ['u', 'Runs'],
  ['?', 'This list'],
];

/** The list of keys, a dialog of the browser. */
export function KeyboardHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [path, go] = useLocation();
  useKeys({
    '?': () => dialog.current?.showModal(),
    i: () => go('/'),
    u: () => go('/runs'),
    '/': () => document.querySelector<HTMLElement>('search input, search select')?.focus(),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the dialog
  useEffect(() => dialog.current?.close(), [path]);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <table>
        <tbody>
          {KEYS.map(([key, effect]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{effect}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <form method="dialog">
        <button type="button" className="bar-button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </form>
    </dialog>
  );
}
