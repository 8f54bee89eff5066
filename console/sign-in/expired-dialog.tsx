import { useEffect, useRef } from 'react';
import { signInAgain } from './session.ts';

/** The page below stays as it is, and what was typed is in its drafts. */
export function ExpiredDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby="expired-title"
      onCancel={(event) => event.preventDefault()}
    >
      <h2 id="expired-title">Your sign-in has expired</h2>
      <p>Nothing was lost: after you have signed in again, this page contains what you typed.</p>
      <button type="button" className="primary-button" onClick={() => signInAgain()}>
        Sign in again
      </button>
    </dialog>
  );
}
