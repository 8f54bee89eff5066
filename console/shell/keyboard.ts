import { useEffect } from 'react';

/** Keys do nothing while somebody types. */
const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Calls the action of a key that is pressed outside of fields, without Ctrl, Alt or Meta. */
export function useKeys(actions: Readonly<Record<string, (() => void) | undefined>>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}

/**
 * `j` and `k` go to the next and the previous of the elements that the selector finds: they focus the first link or button
 * in it, so that Enter opens it.
 */
export function useRowKeys(selector: string): void {
  const move = (by: number) => {
    const rows = [...document.querySelectorAll<HTMLElement>(selector)];
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[here === -1 ? 0 : Math.min(Math.max(here + by, 0), rows.length - 1)];
    (row?.querySelector<HTMLElement>('a, button') ?? row)?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
}
