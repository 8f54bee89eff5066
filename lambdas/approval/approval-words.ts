import type { Approval } from '../run/approval.ts';

/** Texts about an approval that the card and the command line share. */

/** The message of the workflow's author was written before any edit. */
export const messageLabel = ({ edits }: { edits: readonly unknown[] }): string =>
  edits.length === 0 ? 'Message' : 'Message, from before the edit';

/** Before the reason. */
export const UNREAD = 'The current values could not be read, so they are not shown: ';

export const unreadText = ({ unread }: Pick<Approval, 'unread'>): string | undefined =>
  unread === undefined ? undefined : `${UNREAD}${unread}`;
